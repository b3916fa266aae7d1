// Files that lead to other files: what a program that reads foreign input must not follow.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>
#include <string>
#include <vector>

#include "io/hdf5.hpp"
#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

using core::ExitCode;

/// A folder with `f.h5`, which a test fills, and files that it must not read: `secret`, and `other.h5` with a data set
/// `x`.
class Hdf5Origin : public testing::Test {
 protected:
  Hdf5Origin() {
    put(folder_ / "secret", std::string(16, 's'));
    make("other.h5", [](hid_t file) { add_bytes(file, "x", H5P_DEFAULT); });
  }

  void make(const std::string& name, const std::function<void(hid_t)>& fill) const {
    const hid_t file = H5Fcreate((folder_ / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    fill(file);
    ASSERT_GE(H5Fclose(file), 0);
  }

  /// Adds a data set of 16 bytes; writes it if it has a place in the file.
  static void add_bytes(hid_t file, const char* name, hid_t list) {
    const hsize_t size = 16;
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    const hid_t dataset = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    const std::string bytes(16, 'x');
    if (list == H5P_DEFAULT) H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
    H5Dclose(dataset);
    H5Sclose(space);
  }

  /// A data set whose content is that of the file `path`.
  static void add_external(hid_t file, const char* name, const std::string& path) {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(list, path.c_str(), 0, 16);
    add_bytes(file, name, list);
    H5Pclose(list);
  }

  /// A data set whose content is that of another.
  static void add_virtual(hid_t file, const char* name, const char* source_file, const char* source) {
    const hsize_t size = 16;
    const hid_t space = H5Screate_simple(1, &size, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(list, space, source_file, source, space);
    add_bytes(file, name, list);
    H5Pclose(list);
    H5Sclose(space);
  }

  [[nodiscard]] std::string read(const std::string& name, OtherFiles others = OtherFiles::refused) const {
    const Hdf5File file = Hdf5File::open(folder_ / "f.h5", others);
    std::string bytes(16, ' ');
    file.open_dataset(name).read_rows(0, 16, std::as_writable_bytes(std::span{bytes}));
    return bytes;
  }

  /// Expects that it is refused unless the caller allows it.
  void expect_refused(const std::string& name, const std::string& other, char content) const {
    expect_error([&] { static_cast<void>(read(name)); }, ExitCode::usage,
                 {name, folder_ / "f.h5", "another file, '" + other + "'", "fix: copy"});
    EXPECT_EQ(read(name, OtherFiles::followed), std::string(16, content));
  }

  TemporaryFolder folder_;
};

TEST_F(Hdf5Origin, RefusesExternalStorage) {
  make("f.h5", [&](hid_t file) { add_external(file, "x", folder_ / "secret"); });
  expect_refused("x", folder_ / "secret", 's');
}

TEST_F(Hdf5Origin, RefusesLinksToOtherFiles) {
  make("f.h5", [&](hid_t file) {
    H5Lcreate_external("other.h5", "/x", file, "direct", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/", file, "group", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/group/x", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("f.h5", "/group/x", file, "detour", H5P_DEFAULT, H5P_DEFAULT);
  });
  for (const char* const name : {"direct", "/group/x", "soft", "detour"}) {
    expect_refused(name, "other.h5", 'x');
    const Hdf5File file = Hdf5File::open(folder_ / "f.h5");
    expect_error([&] { static_cast<void>(file.has_dataset(name)); }, ExitCode::usage, {"another file, 'other.h5'"});
  }
  EXPECT_TRUE(Hdf5File::open(folder_ / "f.h5").dataset_names().empty());
}

TEST_F(Hdf5Origin, RefusesVirtualDataSetsOfOtherFiles) {
  make("f.h5", [&](hid_t file) { add_virtual(file, "x", "other.h5", "/x"); });
  expect_refused("x", "other.h5", 'x');
}

// The library itself opens sources, and their sources.
TEST_F(Hdf5Origin, RefusesVirtualDataSetsOfWhatLiesElsewhere) {
  make("f.h5", [&](hid_t file) {
    add_external(file, "hidden", folder_ / "secret");
    add_virtual(file, "x", ".", "/hidden");
    add_virtual(file, "xx", ".", "/x");
    H5Lcreate_external("other.h5", "/", file, "group", H5P_DEFAULT, H5P_DEFAULT);
    add_virtual(file, "y", ".", "/group/x");
  });
  expect_refused("x", folder_ / "secret", 's');
  expect_refused("xx", folder_ / "secret", 's');
  expect_refused("y", "other.h5", 'x');
}

TEST_F(Hdf5Origin, ReadsVirtualDataSetsOfTheFileItself) {
  make("f.h5", [](hid_t file) {
    add_bytes(file, "real", H5P_DEFAULT);
    add_virtual(file, "x", ".", "/real");
  });
  EXPECT_EQ(read("x"), std::string(16, 'x'));
}

}  // namespace
}  // namespace lockstep::io
