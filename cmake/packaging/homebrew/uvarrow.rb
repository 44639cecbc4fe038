# SPDX-License-Identifier: Apache-2.0
# uvarrow for Homebrew, built from the archive of `scripts/release source`. Put
# this file into a tap of your own, and that archive beside it:
#     brew install --build-from-source YOUR/TAP/uvarrow
class Uvarrow < Formula
  desc "Arrow data, asynchronous on a libuv loop"
  homepage "https://example.org/uvarrow"
  url "file://#{__dir__}/uvarrow-0.3.0.tar.gz"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => [:build, :test]
  depends_on "libuv"
  depends_on :linux
  depends_on "lz4"
  depends_on "zstd"

  def install
    args = %w[
      -DUVA_TESTS=OFF
      -DUVA_TOOLS=OFF
      -DUVA_EXAMPLES=OFF
      -DUVA_BENCH=OFF
      -DUVA_PYTHON_PACKAGE=OFF
      -DUVA_NODE_PACKAGE=OFF
    ]
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *args, *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    cp_r doc/"examples/consumer/.", testpath
    system "make", "-C", "make"
    assert_equal "3 rows, their sum is 42", shell_output("make/consumer").strip
  end
end
