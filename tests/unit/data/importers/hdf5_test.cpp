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

/// Adds y of three texts of four bytes each.
void add_fixed_texts(const std::string& file, const std::string& texts, H5T_str_t padding) {
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), type = H5Tcopy(H5T_C_S1);
  const hsize_t n = 3;
  EXPECT_GE(H5Tset_size(type, texts.size() / n), 0);
  EXPECT_GE(H5Tset_strpad(type, padding), 0);
  const hid_t space = H5Screate_simple(1, &n, nullptr);
  const hid_t dataset = H5Dcreate2(id, "y", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()), 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(id);
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

TEST_F(Hdf5ImportTest, WordsWithAZeroWithinAreNotMerged) {
  const std::string file = write_hdf5({x_});
  add_fixed_texts(file, std::string{"a\0b\0a\0c\0d\0\0\0", 12}, H5T_STR_NULLPAD);
  expect_usage([&] { open_hdf5(file, {}); }, {"control character", "/y, row 0"});
  const std::string ended = write_hdf5({x_});
  add_fixed_texts(ended, std::string{"a\0b\0a\0c\0d\0\0\0", 12}, H5T_STR_NULLTERM);
  EXPECT_EQ(open_hdf5(ended, {})->spec().classes, (std::vector<std::string>{"a", "d"})) << "what follows is no text";
}

/// y of one byte, whose values have names.
void add_enumeration(const std::string& file, const std::vector<std::pair<std::string, std::uint8_t>>& members,
                     const std::string& values) {
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), type = H5Tenum_create(H5T_STD_U8LE);
  for (const auto& [name, value] : members) EXPECT_GE(H5Tenum_insert(type, name.c_str(), &value), 0);
  const hsize_t n = values.size();
  const hid_t space = H5Screate_simple(1, &n, nullptr);
  const hid_t dataset = H5Dcreate2(id, "y", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(id);
}

TEST_F(Hdf5ImportTest, AnEnumerationIsBoolOnlyIfItSaysSo) {
  const std::string of_bool = write_hdf5({x_});
  add_enumeration(of_bool, {{"FALSE", 0}, {"TRUE", 1}}, {"\1\0\1", 3});
  EXPECT_EQ(values<std::uint8_t>(read_split(*open_hdf5(of_bool, {})).y), (std::vector<std::uint8_t>{1, 0, 1}));
  const std::vector<std::vector<std::pair<std::string, std::uint8_t>>> others{
      {{"CAT", 3}, {"DOG", 7}}, {{"FALSE", 1}, {"TRUE", 0}}, {{"FALSE", 0}, {"TRUE", 2}}, {{"NO", 0}, {"YES", 1}}};
  for (const auto& members : others) {
    const std::string file = write_hdf5({x_});
    add_enumeration(file, members, {"\1\0\1", 3});
    const std::string shown = "enumerated elements of 1 byte (" + members[0].first + ", " + members[1].first + ")";
    expect_usage([&] { open_hdf5(file, {}); }, {shown.c_str(), "/y", "plain numbers"});
  }
  const std::string long_list = write_hdf5({x_});
  add_enumeration(long_list, {{"a", 0}, {"b\033[31m", 1}, {"c", 2}, {"d", 3}}, {"\1\0\1", 3});
  expect_usage([&] { open_hdf5(long_list, {}); }, {"(a, b\\x1b[31m, c, ...)"});
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

TEST_F(Hdf5ImportTest, SaysWhichArraysAreLeftOut) {
  const Dataset weight{"weight", x_.dtype, x_.dimensions, x_.data};
  EXPECT_EQ(open_hdf5(write_hdf5({x_, y_, weight}), {})->remarks().front(), left_out("1 other array: weight"));
  const auto source = open_hdf5(write_hdf5({{"x_train", x_.dtype, x_.dimensions, x_.data},
                                            {"y_train", y_.dtype, y_.dimensions, y_.data},
                                            {"x_test", x_.dtype, x_.dimensions, x_.data},
                                            {"y_test", y_.dtype, y_.dimensions, y_.data}}),
                                {});
  EXPECT_EQ(source->remarks().front(), assumed("there is no val: x_test is the split val"));
}

TEST_F(Hdf5ImportTest, TakesWhatNobodyHasWrittenOnlyIfToldSo) {
  const std::string file = path("a.h5");
  auto hdf5 = io::Hdf5File::create(file);
  auto x = hdf5.create_dataset("x", core::DType::float32, {3, 2}, 1, io::Filter::none);
  for (const std::uint64_t row : {0, 2}) x.write_chunk(row, std::as_bytes(std::span{x_.data}).subspan(row * 8, 8));
  hdf5.create_dataset("y", y_.dtype, y_.dimensions, 0, io::Filter::none).write_all(std::as_bytes(std::span{y_.data}));
  hdf5.close();
  expect_usage([&] { open_hdf5(file, {}); }, {"1 of its 3 chunks was never written", "first of them at row 1"});
}

TEST_F(Hdf5ImportTest, TakesAFillValueAsDataIfToldSo) {
  const std::string file = write_hdf5({y_});
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), list = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t sizes[] = {3, 2}, chunk[] = {2, 2}, offset[] = {0, 0};
  const float fill = 9;
  H5Pset_chunk(list, 2, chunk);
  H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &fill);
  const hid_t space = H5Screate_simple(2, sizes, nullptr);
  const hid_t dataset = H5Dcreate2(id, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset, 16, x_.data.data()), 0);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(list);
  H5Fclose(id);
  expect_usage([&] { open_hdf5(file, {}); }, {"1 of its 2 chunks was never written", "row 2", "--allow-unwritten"});
  const auto source = open_hdf5(file, {.allow_unwritten = true});
  EXPECT_EQ(values<float>(read_split(*source).x), (std::vector<float>{1, 2, 3, 4, 9, 9}));
  EXPECT_EQ(source->remarks().front(),
            assumed("x: 1 of its 2 chunks was never written, the first of them at row 2: the fill value 9"));
}

TEST_F(Hdf5ImportTest, SaysThatAttributesOfOthersAreNotApplied) {
  const std::string file = path("a.h5");
  auto hdf5 = io::Hdf5File::create(file);
  auto x = hdf5.create_dataset("x", x_.dtype, x_.dimensions, 0, io::Filter::none);
  x.write_all(std::as_bytes(std::span{x_.data}));
  for (const char* name : {"scale_factor", "_Unsigned", "valid_max"}) x.set_attribute(name, 3);
  hdf5.create_dataset("y", y_.dtype, y_.dimensions, 0, io::Filter::none).write_all(std::as_bytes(std::span{y_.data}));
  hdf5.close();
  const std::vector<Remark> remarks = open_hdf5(file, {})->remarks();
  ASSERT_GE(remarks.size(), 3U);
  EXPECT_EQ(remarks[0], warning("x: its attribute scale_factor is not applied, values are taken as stored"));
  EXPECT_EQ(remarks[1], warning("x: its attribute _Unsigned is not applied, values are taken as stored"));
  EXPECT_EQ(remarks[2], warning("x: its attribute valid_max is not applied, values are taken as stored"));
}

/// As MATLAB writes `save -v7.3`: a head before the file, and dimensions the other way round.
/// A new file each time: sources keep theirs open.
std::string write_matlab(const std::string& stem, const std::vector<Dataset>& datasets,
                         const char* class_of_y = "double") {
  static int n_files = 0;
  const std::string file = stem + std::to_string(++n_files);
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE), attribute_type = H5Tcopy(H5T_C_S1);
  H5Pset_userblock(creation, 512);
  H5Tset_size(attribute_type, std::strlen(class_of_y));
  const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT), one = H5Screate(H5S_SCALAR);
  for (const Dataset& dataset : datasets) {
    const hid_t type = dataset.dtype == core::DType::float64 ? H5T_IEEE_F64LE : H5T_STD_U8LE;
    const std::vector<hsize_t> sizes{dataset.dimensions.rbegin(), dataset.dimensions.rend()};
    const hid_t space = H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
    const hid_t array = H5Dcreate2(id, dataset.name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, dataset.data.data()), 0);
    if (dataset.name == "y") {
      const hid_t attribute = H5Acreate2(array, "MATLAB_class", attribute_type, one, H5P_DEFAULT, H5P_DEFAULT);
      EXPECT_GE(H5Awrite(attribute, attribute_type, class_of_y), 0);
      H5Aclose(attribute);
    }
    H5Dclose(array);
    H5Sclose(space);
  }
  H5Sclose(one);
  H5Tclose(attribute_type);
  H5Fclose(id);
  H5Pclose(creation);
  std::fstream{file, std::ios::in | std::ios::out | std::ios::binary} << "MATLAB 7.3 MAT-file, Platform: GLNXA64";
  return file;
}

// Column after column, as MATLAB stores [1 2 3; 4 5 6].
TEST_F(Hdf5ImportTest, TurnsMatlabsArraysRound) {
  const Dataset x{"x", core::DType::float64, {2, 3}, bytes<double>({1, 4, 2, 5, 3, 6})};
  const Dataset row{"y", core::DType::uint8, {1, 2}, bytes<std::uint8_t>({7, 8})};
  const Dataset column{"y", core::DType::uint8, {2, 1}, bytes<std::uint8_t>({7, 8})};
  for (const Dataset& y : {row, column}) {
    const auto source = open_hdf5(write_matlab(path("m.mat"), {x, y}, "uint8"), {});
    EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::float64, {3}}));
    EXPECT_EQ(values<double>(read_split(*source).x), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{7, 8}));
    expect_random_access(*source);
    EXPECT_EQ(source->remarks().front(), changed("x: 2 x 3 in MATLAB, transposed and read as 2 samples of [3]"));
  }
  // Two images of 2 rows and 3 columns, as MATLAB's imread and cat(4, ...) give them.
  const Dataset images{
      "x", core::DType::uint8, {2, 3, 1, 2}, bytes<std::uint8_t>({1, 4, 2, 5, 3, 6, 11, 14, 12, 15, 13, 16})};
  const auto source = open_hdf5(write_matlab(path("m.mat"), {images, row}, "uint8"), {});
  EXPECT_EQ(source->spec().x.shape, (std::vector<std::uint64_t>{2, 3, 1})) << "not the rows, though two as well";
  EXPECT_EQ(values<std::uint8_t>(read_split(*source).x),
            (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}));
  const Dataset three{"y", core::DType::uint8, {3, 1}, bytes<std::uint8_t>({7, 8, 9})};
  const Dataset last{
      "x", core::DType::uint8, {2, 2, 1, 3}, bytes<std::uint8_t>({1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12})};
  const auto by_last = open_hdf5(write_matlab(path("m.mat"), {last, three}, "uint8"), {});
  EXPECT_EQ(by_last->spec().x.shape, (std::vector<std::uint64_t>{2, 2, 1}));
  EXPECT_EQ(values<std::uint8_t>(read_split(*by_last).x),
            (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  expect_random_access(*by_last);
  expect_usage([&] { open_hdf5(write_matlab(path("m.mat"), {x, row}, "char"), {}); }, {"a MATLAB array of char", "/y"});
  const Dataset floats{"y", core::DType::float64, {2, 1}, bytes<double>({1, 2})};
  EXPECT_EQ(open_hdf5(write_matlab(path("m.mat"), {x, floats}), {})->remarks().back(),
            assumed("labels: float64, all of them whole numbers up to 2, kept as numbers; for classes, store them as "
                    "integers"));
}

TEST_F(Hdf5ImportTest, TakesASingleSampleOfMatlabOnlyWhereNothingElseFits) {
  struct Shapes {
    io::Dimensions x, y;
    std::vector<std::uint64_t> sample;
    std::uint64_t n;
  };
  for (const Shapes& c :
       {Shapes{{1, 4}, {1, 4}, {1}, 4}, Shapes{{1, 4}, {4, 1}, {1}, 4}, Shapes{{4, 1}, {1, 4}, {1}, 4},
        Shapes{{1, 4}, {1, 1}, {4}, 1}, Shapes{{4, 4}, {1, 4}, {4}, 4}}) {
    const auto bytes_of = [](const io::Dimensions& d) { return std::string(d[0] * d[1], '\1'); };
    const auto source = open_hdf5(
        write_matlab(path("m.mat"),
                     {{"x", core::DType::uint8, c.x, bytes_of(c.x)}, {"y", core::DType::uint8, c.y, bytes_of(c.y)}},
                     "uint8"),
        {});
    EXPECT_EQ(source->splits()[0].n_samples, c.n);
    EXPECT_EQ(source->spec().x.shape, c.sample);
  }
}

// Julia and R write the same without MATLAB's head.
TEST_F(Hdf5ImportTest, SaysThatXIsTurnedRound) {
  const Dataset other_way{"x", core::DType::float32, {2, 3}, x_.data};
  expect_usage(
      [&] {
        open_hdf5(write_hdf5({other_way, y_}), {});
      },
      {"3 labels", "2, one per sample", "x may be transposed", "x.T"});
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
