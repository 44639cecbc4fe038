// SPDX-License-Identifier: Apache-2.0

//! Finds an installed uvarrow by pkg-config, and makes the declarations of its
//! functions by the command bindgen.

use std::process::Command;

const HEADER: &str = "#include <uvarrow/uvarrow.h>\n#include <uvarrow/adbc.h>\n";

fn output(command: &mut Command) -> String {
    let done = command.output().expect("pkg-config and bindgen are needed");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn main() {
    let folder = std::env::var("OUT_DIR").unwrap();
    let header = format!("{folder}/uvarrow.h");
    std::fs::write(&header, HEADER).unwrap();
    let flags = output(Command::new("pkg-config").args(["--cflags", "uvarrow-adbc"]));
    output(
        Command::new("bindgen")
            .args(["--no-prepend-enum-name", "--no-layout-tests", "--no-doc-comments"])
            .args(["--allowlist-function", "uva_.*", "--allowlist-type", "uva_.*"])
            .args(["-o", &format!("{folder}/uvarrow.rs"), &header, "--"])
            .args(flags.split_whitespace()),
    );
    for word in output(Command::new("pkg-config").args(["--libs", "uvarrow-adbc"])).split_whitespace() {
        if let Some(path) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search={path}");
            println!("cargo:rustc-link-arg=-Wl,-rpath,{path}");
        } else if let Some(name) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={name}");
        }
    }
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rerun-if-changed=build.rs");
}
