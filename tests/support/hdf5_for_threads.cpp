// Linked with tests whose ranks are threads and use HDF5: they are skipped where its library is not built for that.
#include <gtest/gtest.h>
#include <hdf5.h>

namespace {

class Hdf5ForThreads : public testing::Environment {
 public:
  void SetUp() override {
    hbool_t is_safe = false;
    if (H5is_library_threadsafe(&is_safe) < 0 || !is_safe) GTEST_SKIP() << "HDF5 here is not safe for threads";
  }
};
[[maybe_unused]] const auto* const hdf5_for_threads = testing::AddGlobalTestEnvironment(new Hdf5ForThreads);

}  // namespace
