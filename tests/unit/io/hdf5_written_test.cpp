// Files that claim values that were never written, or that are still being written.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/file.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "io/hdf5.hpp"
#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

using core::ExitCode;

class Hdf5Written : public testing::Test {
 protected:
  void make(const std::function<void(hid_t)>& fill) const {
    const hid_t file = H5Fcreate((folder_ / "f.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    fill(file);
    ASSERT_GE(H5Fclose(file), 0);
  }

  [[nodiscard]] std::string require(Unwritten unwritten = Unwritten::refused) const {
    return Hdf5File::open(folder_ / "f.h5").open_dataset("x").require_written(unwritten);
  }

  void expect_refused(std::initializer_list<std::string> words, Unwritten unwritten = Unwritten::refused) const {
    std::vector<std::string> all{words};
    for (const std::string& word : {folder_ / "f.h5", std::string{"x"}, std::string{"fix: "}}) all.push_back(word);
    for (const std::string& word : all)
      expect_error([&] { static_cast<void>(require(unwritten)); }, ExitCode::usage, {word});
  }

  TemporaryFolder folder_;
};

/// Adds a data set of bytes in chunks; only chunks that begin at `written` are written. `set` may change its
/// properties.
void add_chunks(
    hid_t file, const std::vector<hsize_t>& sizes, const std::vector<hsize_t>& chunk,
    const std::vector<std::vector<hsize_t>>& written, const std::function<void(hid_t)>& set = [](hid_t) {}) {
  const auto rank = static_cast<int>(sizes.size());
  const hid_t space = H5Screate_simple(rank, sizes.data(), nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, rank, chunk.data());
  set(list);
  const hid_t dataset = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  for (const std::vector<hsize_t>& offset : written) {
    const std::string bytes(chunk.front() * (rank > 1 ? chunk.back() : 1), 'x');
    ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), bytes.size(), bytes.data()), 0);
  }
  H5Dclose(dataset);
  H5Pclose(list);
  H5Sclose(space);
}

TEST_F(Hdf5Written, RefusesRoomWithoutData) {
  make([](hid_t file) { add_chunks(file, {1000000000000, 1000}, {1000, 1000}, {}); });
  expect_refused({"no part of it was ever written: 1000000000 of its 1000000000 chunks"});
  expect_refused({"no part of it was ever written"}, Unwritten::fill_value);
  make([](hid_t file) { add_chunks(file, {1000000000000, 10}, {1000, 10}, {{0, 0}, {1000, 0}, {2000, 0}}); });
  expect_refused({"999999997 of its 1000000000 chunks were never written, the first of them at row 3000"});
  make([](hid_t file) { add_chunks(file, {1 << 30, 960}, {1 << 20, 960}, {}); });
  expect_refused({"its chunks have 960 MiB each"});
  make([](hid_t file) {
    const hsize_t size = 1000000000;
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    H5Dclose(H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  expect_refused({"no part of it was ever written: 1000000000 of its 1000000000 values"});
}

TEST_F(Hdf5Written, CountsMissingChunksAndNamesTheFirstRow) {
  make([](hid_t file) { add_chunks(file, {95}, {10}, {{0}, {10}, {20}, {30}, {50}, {60}, {70}, {80}, {90}}); });
  expect_refused(
      {"1 of its 10 chunks was never written, the first of them at row 40", "fill value 0", "--allow-unwritten"});
  EXPECT_EQ(require(Unwritten::fill_value),
            "1 of its 10 chunks was never written, the first of them at row 40: the fill value 0");
  make([](hid_t file) { add_chunks(file, {40, 30}, {20, 10}, {{0, 0}, {0, 10}, {0, 20}, {20, 0}, {20, 20}}); });
  expect_refused({"1 of its 6 chunks was never written, the first of them at row 20"});
  make([](hid_t file) {
    add_chunks(file, {30}, {10}, {{0}}, [](hid_t list) {
      const unsigned char seven = 7;
      H5Pset_fill_value(list, H5T_NATIVE_UINT8, &seven);
    });
  });
  EXPECT_EQ(require(Unwritten::fill_value),
            "2 of its 3 chunks were never written, the first of them at row 10: the fill value 7");
}

// Reading would return undefined memory.
TEST_F(Hdf5Written, TakesNoFillValueThatThereIsNot) {
  make([](hid_t file) {
    add_chunks(file, {30}, {10}, {{0}}, [](hid_t list) { H5Pset_fill_time(list, H5D_FILL_TIME_NEVER); });
  });
  expect_refused({"2 of its 3 chunks"}, Unwritten::fill_value);
  make([](hid_t file) {
    add_chunks(file, {30}, {10}, {{0}}, [](hid_t list) { H5Pset_fill_value(list, H5T_NATIVE_UINT8, nullptr); });
  });
  expect_refused({"2 of its 3 chunks"}, Unwritten::fill_value);
}

// The library reads zeros where they end too early.
TEST_F(Hdf5Written, ExternalFilesMustHaveAllValues) {
  const auto require_with = [&](const std::string& a, const std::string& b, Unwritten unwritten) {
    for (const auto& [name, content] : {std::pair{"a", a}, {"b", b}}) put(folder_ / name, content);
    make([&](hid_t file) {
      const hsize_t n = 8;
      const hid_t space = H5Screate_simple(1, &n, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_external(list, (folder_ / "a").c_str(), 4, 6);
      H5Pset_external(list, (folder_ / "b").c_str(), 0, H5F_UNLIMITED);
      H5Dclose(H5Dcreate2(file, "x", H5T_STD_U16LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
      H5Pclose(list);
      H5Sclose(space);
    });
    return Hdf5File::open(folder_ / "f.h5", OtherFiles::followed).open_dataset("x").require_written(unwritten);
  };
  const std::string ten(10, 'x');
  EXPECT_EQ(require_with(ten, ten, Unwritten::refused), "");
  EXPECT_EQ(require_with(ten + ten, ten + ten, Unwritten::refused), "");
  struct Case {
    std::string a, b;
    const char* says;
  };
  for (const Case& one : {Case{ten, ten.substr(1), "1 of its 8 values was never written"},
                          {ten.substr(2), ten, "1 of its 8 values"},
                          {"", ten, "3 of its 8 values were never written"},
                          {ten.substr(1), "", "6 of its 8 values"}})
    expect_error([&] { static_cast<void>(require_with(one.a, one.b, Unwritten::refused)); }, ExitCode::usage,
                 {one.says, "x", folder_ / "f.h5"});
  EXPECT_EQ(require_with(ten, "", Unwritten::fill_value), "5 of its 8 values were never written: the fill value 0");
  expect_error([&] { static_cast<void>(require_with("", "", Unwritten::fill_value)); }, ExitCode::usage,
               {"no part of it was ever written"});
}

/// A data set of `n` bytes.
void add_whole(hid_t file, const char* name, hsize_t n) {
  const hid_t space = H5Screate_simple(1, &n, nullptr);
  const hid_t dataset = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const std::string bytes(n, 'x');
  EXPECT_GE(H5Dwrite(dataset, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

/// A data set of `n` bytes, all taken from `source` in `file_name`.
void add_virtual(hid_t file, const char* name, hsize_t n, const char* file_name, const char* source) {
  const hid_t space = H5Screate_simple(1, &n, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  EXPECT_GE(H5Pset_virtual(list, space, file_name, source, space), 0);
  H5Dclose(H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
  H5Pclose(list);
  H5Sclose(space);
}

TEST_F(Hdf5Written, LooksIntoTheSourcesOfAVirtualDataSet) {
  make([](hid_t file) { add_virtual(file, "x", 16, ".", "/real"); });
  expect_refused({"no part of it was ever written: 16 of its 16 values"});
  make([](hid_t file) {
    add_whole(file, "real", 12);
    add_virtual(file, "x", 16, ".", "/real");
  });
  expect_refused({"4 of its 16 values were never written"});
  make([](hid_t file) {
    add_chunks(file, {20}, {10}, {{0}});
    H5Lmove(file, "x", file, "real", H5P_DEFAULT, H5P_DEFAULT);
    add_virtual(file, "between", 20, ".", "/real");
    add_virtual(file, "x", 20, ".", "/between");
  });
  for (const char* word : {"1 of its 2 chunks was never written, the first of them at row 10", "/real"})
    expect_error([&] { static_cast<void>(require()); }, ExitCode::usage, {word});
  EXPECT_EQ(require(Unwritten::fill_value),
            "its part /between: its part /real: 1 of its 2 chunks was never written, the first of them at row 10: the "
            "fill value 0");
  make([](hid_t file) {
    add_whole(file, "real", 16);
    add_virtual(file, "x", 16, ".", "/real");
  });
  EXPECT_EQ(require(), "");
  make([](hid_t file) { add_virtual(file, "x", 16, ".", "/x"); });
  expect_error([&] { static_cast<void>(require(Unwritten::fill_value)); }, ExitCode::usage, {"'/x'"});
}

TEST_F(Hdf5Written, LooksIntoOtherFilesThatHaveParts) {
  make([](hid_t file) { add_chunks(file, {20}, {10}, {{0}}); });
  std::filesystem::rename(folder_ / "f.h5", folder_ / "part.h5");
  make([](hid_t file) { add_virtual(file, "x", 20, "part.h5", "/x"); });
  const auto require_all = [&] {
    return Hdf5File::open(folder_ / "f.h5", OtherFiles::followed).open_dataset("x").require_written();
  };
  expect_error([&] { static_cast<void>(require_all()); }, ExitCode::usage, {"1 of its 2 chunks was never written"});
  make([](hid_t file) { add_virtual(file, "x", 20, "part.h5", "/none"); });
  expect_error([&] { static_cast<void>(require_all()); }, ExitCode::usage, {"20 of its 20 values"});
}

TEST_F(Hdf5Written, SaysThatRoomTakenEarlyTellsNothing) {
  make([](hid_t file) {
    add_chunks(file, {20}, {10}, {{0}}, [](hid_t list) { H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY); });
  });
  EXPECT_EQ(require(), "its room was allocated early, so that the file does not tell whether all of it was written");
}

TEST_F(Hdf5Written, CountsValuesThatNoSourceHas) {
  make([](hid_t file) {
    const hsize_t all = 16, part = 12, first = 0;
    const hid_t real = H5Screate_simple(1, &part, nullptr), space = H5Screate_simple(1, &all, nullptr);
    add_whole(file, "real", 12);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &part, nullptr);
    H5Pset_virtual(list, space, ".", "/real", real);
    H5Dclose(H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    H5Sclose(real);
  });
  expect_refused({"4 of its 16 values were never written"});
}

TEST_F(Hdf5Written, TakesWhatIsWhole) {
  make([](hid_t file) { add_chunks(file, {25}, {10}, {{0}, {10}, {20}}); });
  EXPECT_EQ(require(), "");
  make([](hid_t file) { add_chunks(file, {0}, {10}, {}); });
  EXPECT_EQ(require(), "");
}

TEST_F(Hdf5Written, RefusesAFileThatSomebodyWrites) {
  make([](hid_t file) { add_chunks(file, {10}, {10}, {{0}}); });
  const std::string path = folder_ / "f.h5";
  const auto lock = [&](int kind) {
    core::Descriptor file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    EXPECT_EQ(flock(file.get(), kind | LOCK_NB), 0);
    return file;
  };
  {
    const core::Descriptor writer = lock(LOCK_EX);
    expect_error([&] { Hdf5File::open_foreign(path); }, ExitCode::usage,
                 {"open for writing", path, "fuser -v " + path});
    EXPECT_NO_THROW(Hdf5File::open(path)) << "shards are another matter";
  }
  const core::Descriptor reader = lock(LOCK_SH);
  const Hdf5File file = Hdf5File::open_foreign(path);
  const core::Descriptor late{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  EXPECT_NE(flock(late.get(), LOCK_EX | LOCK_NB), 0) << "a writer has to wait";
}

// A copy of an open file has the mark that a killed writer leaves.
TEST_F(Hdf5Written, SaysHowToTakeOffTheMarkOfAKilledWriter) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = H5Fcreate((folder_ / "open.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  put(folder_ / "f.h5", get(folder_ / "open.h5"));
  H5Fclose(file);
  H5Pclose(access);
  expect_error([&] { Hdf5File::open_foreign(folder_ / "f.h5"); }, ExitCode::usage,
               {"marked as open for writing", "h5clear -s " + (folder_ / "f.h5")});
}

}  // namespace
}  // namespace lockstep::io
