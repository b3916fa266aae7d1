// Linked with tests whose ranks are threads and use HDF5. If the library is not built for threads, ends them with exit
// code 77, like a test that skips itself.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdlib>
#include <iostream>

namespace {

class Hdf5ForThreads : public testing::Environment {
 public:
  void SetUp() override {
    hbool_t is_safe = false;
    if (H5is_library_threadsafe(&is_safe) >= 0 && is_safe) return;
    std::cout << "HDF5 here is not safe for threads" << std::endl;
    std::exit(77);
  }
};
[[maybe_unused]] const auto* const hdf5_for_threads = testing::AddGlobalTestEnvironment(new Hdf5ForThreads);

}  // namespace
