module subject

go 1.21
