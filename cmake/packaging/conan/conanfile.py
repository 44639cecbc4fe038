# SPDX-License-Identifier: Apache-2.0
"""uvarrow for Conan 2: the libraries and headers, built from this source.

    conan create cmake/packaging/conan -o 'uvarrow/*:system_libuv=True'

With system_libuv, libuv, LZ4 and Zstandard are those that pkg-config finds.
"""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps


class Uvarrow(ConanFile):
    name = "uvarrow"
    license = "Apache-2.0"
    description = "Arrow C Device data, asynchronous on a libuv loop"
    topics = ("arrow", "libuv", "asynchronous")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "system_libuv": [True, False]}
    default_options = {"shared": False, "system_libuv": False}

    @property
    def _source(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._source, "include/uvarrow/base.h"))
        self.version = ".".join(re.findall(
            r"#define UVA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))

    def export_sources(self):
        for name in ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md",
                     "CONTRIBUTING.md", "include/*", "runtime/*", "tck/*",
                     "cmake/*", "docs/*", "examples/*"):
            copy(self, name, self._source, self.export_sources_folder)

    def requirements(self):
        if not self.options.system_libuv:
            self.requires("libuv/[>=1.8 <2]", transitive_headers=True)
            self.requires("lz4/[>=1.9 <2]")
            self.requires("zstd/[>=1.5 <2]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "TOOLS", "EXAMPLES", "BENCH", "PYTHON_PACKAGE",
                     "NODE_PACKAGE"):
            toolchain.cache_variables["UVA_" + part] = False
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # it has its own
        self.cpp_info.set_property("pkg_config_name", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake"))
