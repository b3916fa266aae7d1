// Files as other programs write them: other types, layouts, byte orders and groups.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <functional>

#include "io/hdf5.hpp"
#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

using core::DType;
using core::ExitCode;

/// A file made by the library alone.
void make_file(const std::string& path, const std::function<void(hid_t)>& fill) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  fill(file);
  ASSERT_GE(H5Fclose(file), 0);
}

/// A data set of `values`, of any type in the file.
template <class T>
void add(hid_t file, const char* name, hid_t type, hid_t memory_type, const std::vector<hsize_t>& sizes,
         const std::vector<T>& values, hid_t list = H5P_DEFAULT) {
  const hid_t space = H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

template <class T>
std::vector<T> read_all(const Hdf5Dataset& dataset, std::size_t n) {
  std::vector<T> values(n);
  dataset.read_rows(0, dataset.dimensions().front(), std::as_writable_bytes(std::span{values}));
  return values;
}

TEST(Hdf5Foreign, ReadsOtherByteOrders) {
  const TemporaryFolder folder;
  const std::vector<std::int32_t> integers{1, -2, 3000000};
  const std::vector<double> floats{1.5, -2.25, 1e300};
  make_file(folder / "f.h5", [&](hid_t file) {
    add(file, "i", H5T_STD_I32BE, H5T_NATIVE_INT32, {3}, integers);
    add(file, "f", H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, {3}, floats);
  });
  const Hdf5File file = Hdf5File::open(folder / "f.h5");
  EXPECT_EQ(file.open_dataset("i").dtype(), DType::int32);
  EXPECT_EQ(read_all<std::int32_t>(file.open_dataset("i"), 3), integers);
  EXPECT_EQ(file.open_dataset("f").dtype(), DType::float64);
  EXPECT_EQ(read_all<double>(file.open_dataset("f"), 3), floats);
}

TEST(Hdf5Foreign, ListsDataSetsAtAnyDepth) {
  const TemporaryFolder folder;
  make_file(folder / "f.h5", [&](hid_t file) {
    const std::vector<std::int32_t> one{1};
    add(file, "z", H5T_STD_I32LE, H5T_NATIVE_INT32, {1}, one);
    const hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t inner = H5Gcreate2(group, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add(inner, "deep", H5T_STD_I32LE, H5T_NATIVE_INT32, {1}, one);
    add(group, "a", H5T_STD_I32LE, H5T_NATIVE_INT32, {1}, one);
    H5Gclose(inner);
    H5Gclose(group);
  });
  const Hdf5File file = Hdf5File::open(folder / "f.h5");
  EXPECT_EQ(file.dataset_names(), (std::vector<std::string>{"/group/a", "/group/inner/deep", "/z"}));
  EXPECT_EQ(read_all<std::int32_t>(file.open_dataset("/group/inner/deep"), 1), std::vector{1});
}

TEST(Hdf5Foreign, ReadsChunksOfPartsOfRows) {
  const TemporaryFolder folder;
  std::vector<float> values(40 * 30);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  make_file(folder / "f.h5", [&](hid_t file) {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {7, 8};
    H5Pset_chunk(list, 2, chunk);
    H5Pset_deflate(list, 4);
    add(file, "x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {40, 30}, values, list);
    H5Pclose(list);
  });
  const Hdf5File file = Hdf5File::open(folder / "f.h5");
  const Hdf5Dataset dataset = file.open_dataset("x");
  EXPECT_EQ(read_all<float>(dataset, values.size()), values);
  expect_error([&] { static_cast<void>(dataset.extents()); }, ExitCode::usage, {folder / "f.h5", "x", "whole rows"});
}

// Chunks that the library packs by our registered filters equal those of our own encoder, and vice versa.
TEST(Hdf5Foreign, TheLibrarysChunksAreOurs) {
  const TemporaryFolder folder;
  Hdf5File::create(folder / "prepare.h5").close();  // registers the filters
  std::vector<std::int32_t> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * i);
  for (const Filter filter : {Filter::zstd, Filter::lz4}) {
    make_file(folder / "f.h5", [&](hid_t file) {
      const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
      const hsize_t chunk = 500;
      H5Pset_chunk(list, 1, &chunk);
      H5Pset_shuffle(list);
      ASSERT_GE(H5Pset_filter(list, filter == Filter::zstd ? zstd_id : lz4_id, H5Z_FLAG_MANDATORY, 0, nullptr), 0);
      add(file, "x", H5T_STD_I32LE, H5T_NATIVE_INT32, {1000}, values, list);
      H5Pclose(list);
    });
    const auto extents = Hdf5File::open(folder / "f.h5").open_dataset("x").extents();
    ASSERT_EQ(extents.size(), 2u);
    const std::string stored = get(folder / "f.h5").substr(extents[1].address, extents[1].bytes);
    std::vector<std::int32_t> half(500);
    ASSERT_TRUE(decode(filter, 4, bytes_of(stored), std::as_writable_bytes(std::span{half})));
    EXPECT_TRUE(std::equal(half.begin(), half.end(), values.begin() + 500));
    const auto ours = encode(filter, 0, 4, std::as_bytes(std::span{values}.subspan(500)));
    EXPECT_EQ(stored, std::string(reinterpret_cast<const char*>(ours.data()), ours.size()));
  }
}

/// A file with one data set `x` of these numbers.
void make_numbers(const std::string& path, const std::vector<std::int32_t>& values) {
  make_file(path, [&](hid_t file) { add(file, "x", H5T_STD_I32LE, H5T_NATIVE_INT32, {values.size()}, values); });
}

void link_external(hid_t file, const char* name, const char* path, const char* object) {
  ASSERT_GE(H5Lcreate_external(path, object, file, name, H5P_DEFAULT, H5P_DEFAULT), 0);
}

void link_soft(hid_t file, const char* name, const char* target) {
  ASSERT_GE(H5Lcreate_soft(target, file, name, H5P_DEFAULT, H5P_DEFAULT), 0);
}

TEST(Hdf5Foreign, FollowsLinks) {
  const TemporaryFolder folder;
  make_numbers(folder / "g.h5", {7, 8});
  make_numbers(folder / "f.h5", {1, 2});
  const hid_t f = H5Fopen((folder / "f.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  link_soft(f, "soft", "/x");
  link_soft(f, "group", "/");
  link_external(f, "self", "f.h5", "/x");
  link_external(f, "other", "g.h5", "/x");
  link_external(f, "others", "g.h5", "/");
  H5Fclose(f);
  const Hdf5File file = Hdf5File::open(folder / "f.h5", OtherFiles::followed);
  for (const char* const name : {"soft", "/group/x", "self"}) {
    EXPECT_TRUE(file.has_dataset(name)) << name;
    EXPECT_EQ(read_all<std::int32_t>(file.open_dataset(name), 2), (std::vector{1, 2})) << name;
  }
  for (const char* const name : {"other", "/others/x"}) {
    EXPECT_TRUE(file.has_dataset(name)) << name;
    EXPECT_EQ(read_all<std::int32_t>(file.open_dataset(name), 2), (std::vector{7, 8})) << name;
  }
  for (const char* const name : {"group", "/group/y", "none", "/none/x", "/x/x"})
    EXPECT_FALSE(file.has_dataset(name)) << name;
}

TEST(Hdf5Foreign, NamesLinksThatLeadNowhere) {
  const TemporaryFolder folder;
  make_numbers(folder / "g.h5", {7, 8});
  make_file(folder / "f.h5", [&](hid_t file) {
    link_soft(file, "gone", "/y");
    link_soft(file, "itself", "/itself");
    link_external(file, "file", "none.h5", "/x");
    link_external(file, "object", "g.h5", "/y");
  });
  const Hdf5File file = Hdf5File::open(folder / "f.h5", OtherFiles::followed);
  const auto expect_dead = [&](const std::string& name, const std::string& target) {
    const std::initializer_list<std::string> words{"link", "leads nowhere", target, folder / "f.h5"};
    expect_error([&] { static_cast<void>(file.has_dataset(name)); }, ExitCode::usage, words);
    expect_error([&] { static_cast<void>(file.open_dataset(name)); }, ExitCode::usage, words);
  };
  expect_dead("gone", "'/y'");
  expect_dead("itself", "'/itself'");
  expect_dead("file", "'/x' of 'none.h5'");
  expect_dead("/file/deeper/x", "'/x' of 'none.h5'");
  expect_dead("object", "'/y' of 'g.h5'");
  EXPECT_TRUE(file.dataset_names().empty());
}

TEST(Hdf5Foreign, NamesFiltersTheLibraryLacks) {
  const TemporaryFolder folder;
  make_file(folder / "f.h5", [&](hid_t file) {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 2;
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_filter(list, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr);  // LZF, from h5py
    add(file, "x", H5T_STD_I32LE, H5T_NATIVE_INT32, {4}, std::vector<std::int32_t>{1, 2, 3, 4}, list);
    H5Pclose(list);
  });
  const Hdf5File file = Hdf5File::open(folder / "f.h5");
  expect_error([&] { static_cast<void>(file.open_dataset("x")); }, ExitCode::usage,
               {folder / "f.h5", "x", "filter 32000", "gzip"});
}

// The library would read zeros.
TEST(Hdf5Foreign, NamesMissingPartsOfVirtualDataSets) {
  const TemporaryFolder folder;
  make_numbers(folder / "a.h5", {1, 2});
  make_numbers(folder / "b.h5", {3, 4});
  make_file(folder / "f.h5", [&](hid_t file) {
    const hsize_t all = 4, part = 2;
    const hid_t space = H5Screate_simple(1, &all, nullptr), source = H5Screate_simple(1, &part, nullptr);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    for (const hsize_t first : {0, 2}) {
      H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &part, nullptr);
      H5Pset_virtual(list, space, first == 0 ? "a.h5" : "b.h5", "/x", source);
    }
    H5Dclose(H5Dcreate2(file, "x", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(source);
    H5Sclose(space);
  });
  EXPECT_EQ(read_all<std::int32_t>(Hdf5File::open(folder / "f.h5", OtherFiles::followed).open_dataset("x"), 4),
            (std::vector{1, 2, 3, 4}));
  std::filesystem::remove(folder / "b.h5");
  const Hdf5File file = Hdf5File::open(folder / "f.h5", OtherFiles::followed);
  expect_error([&] { static_cast<void>(file.open_dataset("x")); }, ExitCode::usage, {folder / "f.h5", "x", "'b.h5'"});
}

TEST(Hdf5Foreign, RefusesElementsThatAreNoNumbers) {
  const TemporaryFolder folder;
  make_file(folder / "f.h5", [&](hid_t file) {
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    add(file, "text", text, text, {2}, std::vector<char>(8, 'a'));
    H5Tclose(text);
    const hid_t narrow = H5Tcopy(H5T_STD_I32LE);
    H5Tset_precision(narrow, 24);
    add(file, "narrow", narrow, H5T_NATIVE_INT32, {2}, std::vector<std::int32_t>{1, 2});
    H5Tclose(narrow);
  });
  const Hdf5File file = Hdf5File::open(folder / "f.h5");
  for (const char* const name : {"text", "narrow"}) {
    const Hdf5Dataset dataset = file.open_dataset(name);
    EXPECT_FALSE(dataset.dtype());
    EXPECT_EQ(dataset.dimensions(), Dimensions{2});
    EXPECT_EQ(dataset.describe_elements(),
              name == std::string{"text"} ? "text elements of 4 bytes" : "integer elements of 4 bytes");
    expect_error([&] { dataset.read_rows(0, 0, {}); }, ExitCode::usage, {folder / "f.h5", name});
  }
}

TEST(Hdf5Foreign, RefusesSingleValuesAndScatteredData) {
  const TemporaryFolder folder;
  make_file(folder / "f.h5", [&](hid_t file) {
    const hid_t space = H5Screate(H5S_SCALAR);
    H5Dclose(H5Dcreate2(file, "scalar", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(list, H5D_COMPACT);
    add(file, "compact", H5T_STD_I32LE, H5T_NATIVE_INT32, {2}, std::vector<std::int32_t>{1, 2}, list);
    H5Pclose(list);
  });
  const Hdf5File file = Hdf5File::open(folder / "f.h5");
  const Hdf5Dataset scalar = file.open_dataset("scalar");
  expect_error([&] { scalar.read_rows(0, 0, {}); }, ExitCode::usage, {folder / "f.h5", "scalar"});
  const Hdf5Dataset compact = file.open_dataset("compact");
  EXPECT_EQ(read_all<std::int32_t>(compact, 2), (std::vector<std::int32_t>{1, 2}));
  expect_error([&] { static_cast<void>(compact.extents()); }, ExitCode::usage, {folder / "f.h5", "compact"});
}

TEST(Hdf5Foreign, ReadsTextsOfVariableLength) {
  const TemporaryFolder folder;
  make_file(folder / "f.h5", [&](hid_t file) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file, "by", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const char* const text = "somebody";
    H5Awrite(attribute, type, &text);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
  });
  EXPECT_EQ(Hdf5File::open(folder / "f.h5").text_attribute("by"), "somebody");
}

}  // namespace
}  // namespace lockstep::io
