# uvarrow for Nix, built from this source:
#     nix-build -E 'with import <nixpkgs> {}; callPackage ./cmake/packaging/nix {}'
{ lib, stdenv, cmake, ninja, pkg-config, libuv, lz4, zstd }:

stdenv.mkDerivation {
  pname = "uvarrow";
  version = "0.3.0";
  src = lib.cleanSource ../../..;

  nativeBuildInputs = [ cmake ninja pkg-config ];
  propagatedBuildInputs = [ libuv lz4 zstd ]; # the CMake files ask for them

  cmakeFlags = [
    "-DUVA_TESTS=OFF"
    "-DUVA_TOOLS=OFF"
    "-DUVA_EXAMPLES=OFF"
    "-DUVA_BENCH=OFF"
    "-DUVA_PYTHON_PACKAGE=OFF"
    "-DUVA_NODE_PACKAGE=OFF"
  ];

  meta = {
    description = "Arrow C Device data, asynchronous on a libuv loop";
    license = lib.licenses.asl20;
    platforms = lib.platforms.linux;
  };
}
