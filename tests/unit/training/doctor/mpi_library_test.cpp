#include "training/doctor/mpi_library.hpp"

#include "unit/training/doctor/fixture.hpp"

namespace lockstep::training::doctor {
namespace {

TEST(MpiLibrary, IsNamedByItsFirstLine) {
  EXPECT_EQ(name_mpi(open_mpi_text), "Open MPI v4.1.4");
  EXPECT_EQ(name_mpi(mpich_text), "MPICH Version: 4.0.2");
  EXPECT_EQ(name_mpi("MPI VERSION    : CRAY MPICH version 9.1.0 (ANL base 4.1)\nMPI BUILD"),
            "MPI VERSION : CRAY MPICH version 9.1.0 (ANL base 4.1)");
  EXPECT_EQ(name_mpi(""), "an unknown MPI");
}

TEST(MpiLibrary, HasAFamily) {
  EXPECT_EQ(find_family(open_mpi_text), MpiFamily::open_mpi);
  EXPECT_EQ(find_family(mpich_text), MpiFamily::mpich);
  EXPECT_EQ(find_family("MPI VERSION    : CRAY MPICH version 8.1.29"), MpiFamily::cray_mpich);
  EXPECT_EQ(find_family("Intel(R) MPI Library 2021.10 for Linux* OS"), MpiFamily::intel_mpi);
  EXPECT_EQ(find_family("MVAPICH2 Version      :\t2.3.7"), MpiFamily::mvapich);
  EXPECT_EQ(find_family("Something else"), MpiFamily::other);
  EXPECT_TRUE(descends_from_mpich(MpiFamily::cray_mpich));
  EXPECT_FALSE(descends_from_mpich(MpiFamily::open_mpi));
  EXPECT_FALSE(descends_from_mpich(MpiFamily::other));
}

TEST(MpiLibrary, OfNobodyTellsNothingOfItsTransport) {
  EXPECT_EQ(find_carrier({.mpi_library = "Something else"}).transport, Transport::unknown);
}

}  // namespace
}  // namespace lockstep::training::doctor
