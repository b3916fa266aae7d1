#include "io/hdf5.hpp"

#include <hdf5.h>

#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

struct Dataset {
  std::string name;
  core::DType dtype;
  io::Dimensions dimensions;
  std::string data;
};

class Hdf5ImportTest : public ImporterTest {
 protected:
  [[nodiscard]] std::string write_hdf5(const std::vector<Dataset>& datasets) const {
    const std::string file = path("a.h5");
    std::filesystem::remove(file);
    auto hdf5 = io::Hdf5File::create(file);
    for (const Dataset& dataset : datasets) {
      hdf5.create_dataset(dataset.name, dataset.dtype, dataset.dimensions, 0, io::Filter::none)
          .write_all(std::as_bytes(std::span{dataset.data}));
    }
    hdf5.close();
    return file;
  }

  const Dataset x_{"x", core::DType::float32, {3, 2}, bytes<float>({1, 2, 3, 4, 5, 6})};
  const Dataset y_{"y", core::DType::int64, {3}, bytes<std::int64_t>({2, 0, 1})};
};

TEST_F(Hdf5ImportTest, ReadsXAndY) {
  const auto source = open_hdf5(write_hdf5({x_, y_}), {});
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::float32, {2}}));
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
  const Samples all = read_split(*source);
  EXPECT_EQ(values<float>(all.x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values<std::uint8_t>(all.y), (std::vector<std::uint8_t>{2, 0, 1}));
  expect_random_access(*source);
}

TEST_F(Hdf5ImportTest, TakesOtherNames) {
  const std::string file =
      write_hdf5({{"inputs", x_.dtype, x_.dimensions, x_.data}, {"labels", y_.dtype, y_.dimensions, y_.data}});
  EXPECT_EQ(open_hdf5(file, {.x_name = "/inputs", .y_name = "labels"})->splits()[0].n_samples, 3);
  expect_usage([&] { open_hdf5(file, {}); }, {"no array 'x'", "a.h5", "inputs, labels", "--x-name"});
  EXPECT_EQ(
      open_hdf5(
          write_hdf5({{"images", x_.dtype, x_.dimensions, x_.data}, {"labels", y_.dtype, y_.dimensions, y_.data}}), {})
          ->splits()[0]
          .n_samples,
      3);
}

/// Adds texts as foreign programs write them: of variable length if `length` is 0.
void add_texts(const std::string& file, const char* name, std::vector<const char*> texts, std::size_t length,
               H5T_str_t padding = H5T_STR_NULLPAD) {
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t type = H5Tcopy(H5T_C_S1);
  const hsize_t n = texts.size();
  const hid_t space = H5Screate_simple(1, &n, nullptr);
  std::string fixed;
  for (const char* text : texts) {
    fixed += text;
    fixed.resize(fixed.size() + length - std::min(length, std::strlen(text)), padding == H5T_STR_SPACEPAD ? ' ' : '\0');
  }
  EXPECT_GE(H5Tset_size(type, length == 0 ? H5T_VARIABLE : length), 0);
  if (length > 0) H5Tset_strpad(type, padding);
  const hid_t dataset = H5Dcreate2(id, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const void* data = length == 0 ? static_cast<const void*>(texts.data()) : fixed.data();
  EXPECT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(id);
}

TEST_F(Hdf5ImportTest, TakesWordsAsClasses) {
  struct Kind {
    std::size_t length;
    H5T_str_t padding;
  };
  for (const Kind kind : {Kind{0, H5T_STR_NULLTERM}, Kind{4, H5T_STR_NULLPAD}, Kind{6, H5T_STR_SPACEPAD}}) {
    const std::string file = write_hdf5({x_});
    add_texts(file, "y", {"wasp", "ant", "wasp"}, kind.length, kind.padding);
    const auto source = open_hdf5(file, {});
    EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
    EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"ant", "wasp"}));
    EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{1, 0, 1}));
    expect_random_access(*source);
  }
  const std::string gap = write_hdf5({x_});
  add_texts(gap, "y", {"wasp", "", "wasp"}, 0);
  expect_usage([&] { open_hdf5(gap, {}); }, {"an empty label", "a.h5, data set /y, row 1"});
  const std::string words = write_hdf5({y_});
  add_texts(words, "x", {"wasp", "ant", "wasp"}, 0);
  expect_usage([&] { open_hdf5(words, {}); }, {"text elements", "/x"});
  const std::string long_words = write_hdf5({x_});
  add_texts(long_words, "y", {"wasp", "ant", "wasp"}, 70000);
  expect_usage([&] { open_hdf5(long_words, {}); }, {"texts of 70000 bytes", "/y"});
}

TEST_F(Hdf5ImportTest, NamesDataSetAndLength) {
  const std::string file = write_hdf5({x_, {"y", core::DType::int64, {2}, bytes<std::int64_t>({2, 0})}});
  expect_usage([&] { open_hdf5(file, {}); }, {"2 labels", "a.h5, data set /y", "3, one per sample", "/x"});
  expect_usage([&] { open_hdf5(write_hdf5({x_}), {}); }, {"'x' has no 'y'"});
  const auto foreign = core::thrown_by([&] { open_hdf5(write("b.h5", "no HDF5"), {}); });
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->code(), core::ExitCode::usage);
  EXPECT_NE(std::string{foreign->what()}.find("b.h5"), std::string::npos);
}

TEST_F(Hdf5ImportTest, FollowsLinksAndTakesBool) {
  const auto file = std::filesystem::path{__FILE__}.parent_path() / "golden" / "h5py_links.h5";
  expect_usage([&] { open_hdf5(file.string(), {}); },
               {"another file, 'h5py_flags.h5'", "/y", "--allow-external-files"});
  const auto source = open_hdf5(file.string(), {.allow_external_files = true});
  const Samples all = read_split(*source);
  EXPECT_EQ(values<float>(all.x), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
  EXPECT_EQ(values<std::uint8_t>(all.y), (std::vector<std::uint8_t>{1, 0, 1}));
}

}  // namespace
}  // namespace lockstep::data
