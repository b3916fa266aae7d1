# Spack's recipe. From a checkout:
#   git archive --prefix=lockstep-0.1.0/ -o lockstep-0.1.0.tar.gz HEAD
#   spack repo add share/spack && spack install --no-checksum lockstep
import os

from spack.package import *


class Lockstep(CMakePackage):
    """MPI-native benchmark of all-reduce, which checks whether a machine's collectives are as fast and correct as they should
    be, and data-parallel training from HDF5 shards, which resumes after preemption and time limits."""

    manual_download = True
    url = f"file://{os.getcwd()}/lockstep-0.1.0.tar.gz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("training", default=True, description="lockstep, the program for data and training")
    variant("hwloc", default=True, description="Sockets and cores of ranks")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("mpi@3.1:")
    depends_on("cli11")
    depends_on("fmt")
    depends_on("spdlog")
    depends_on("nlohmann-json")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:", when="+hwloc")

    with when("+training"):
        depends_on("hdf5@1.10.5:")
        depends_on("zstd")
        depends_on("lz4")
        depends_on("zlib-api")
        depends_on("libzip")
        depends_on("xxhash@0.8:")
        depends_on("libjpeg-turbo")
        depends_on("libpng")
        depends_on("utf8proc@2.2:")
        depends_on("tomlplusplus")
        depends_on("onednn@2.6:3")
        depends_on("kokkos@3.4: +openmp+serial")

    def cmake_args(self):
        return [
            self.define_from_variant("LOCKSTEP_BUILD_TRAINING", "training"),
            self.define("LOCKSTEP_WITH_HWLOC", "ON" if "+hwloc" in self.spec else "OFF"),
            self.define("LOCKSTEP_BUILD_TESTING", self.run_tests),
        ]
