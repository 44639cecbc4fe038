# SPDX-License-Identifier: Apache-2.0
"""Builds the project of CMake in examples/consumer with the package, and runs it."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "PkgConfigDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["STATIC"] = (
            not self.dependencies["uvarrow"].options.shared)
        toolchain.generate()

    def build(self):
        examples = os.path.join(self.dependencies["uvarrow"].package_folder,
                                "share/doc/uvarrow/examples/consumer/cmake")
        cmake = CMake(self)
        cmake.configure(build_script_folder=examples)
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "consumer"),
                     env="conanrun")
