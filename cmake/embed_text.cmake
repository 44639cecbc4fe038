# Puts a text into the C file OUT, as the array NAME, with @VERSION@ replaced:
#   cmake -DTEXT=openapi.json -DOUT=openapi.c -DHEADER=openapi.h
#     -DNAME=uva__openapi -DVERSION=0.3.0 -P embed_text.cmake
cmake_minimum_required(VERSION 3.18)
include("${CMAKE_CURRENT_LIST_DIR}/embed_array.cmake")
file(READ "${TEXT}" text)
string(REPLACE "@VERSION@" "${VERSION}" text "${text}")
as_array("${text}" ${NAME} array)
file(WRITE "${OUT}"
    "/* Made by cmake/embed_text.cmake. */\n#include \"${HEADER}\"\n${array}")
