#include <zip.h>

#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

using Strings = std::vector<std::string>;

/// An .npy file as NumPy writes it, version 1.
std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                const char* order = "False") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const char length[2] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return "\x93NUMPY" + std::string{'\1', '\0'} + std::string{length, 2} + header + data;
}

class NpyTest : public ImporterTest {
 protected:
  std::unique_ptr<Source> open(const ImportOptions& options = {}) const { return open_npy(folder_.string(), options); }

  [[nodiscard]] std::string write_npz(const std::vector<std::pair<std::string, std::string>>& members, int method,
                                      const char* name = "a.npz") const {
    const std::string file = path(name);
    std::filesystem::remove(file);
    zip_t* archive = zip_open(file.c_str(), ZIP_CREATE, nullptr);
    for (const auto& [member, data] : members) {
      zip_source_t* source = zip_source_buffer(archive, data.data(), data.size(), 0);
      const zip_int64_t index = zip_file_add(archive, member.c_str(), source, 0);
      EXPECT_EQ(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0), 0);
    }
    EXPECT_EQ(zip_close(archive), 0);
    return file;
  }

  const std::string x_ = npy("<f4", "(3, 2)", bytes<float>({1, 2, 3, 4, 5, 6}));
  const std::string y_ = npy("<i8", "(3,)", bytes<std::int64_t>({2, 0, 1}));
};

TEST_F(NpyTest, ReadsAFolder) {
  write("x.npy", x_);
  write("y.npy", y_);
  const auto source = open();
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::float32, {2}}));
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
  EXPECT_EQ(source->spec().classes, (Strings{"0", "1", "2"}));
  ASSERT_EQ(source->splits().size(), 1);
  EXPECT_EQ(source->splits()[0].name, "train");
  const Samples all = read_split(*source);
  EXPECT_EQ(values<float>(all.x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values<std::uint8_t>(all.y), (std::vector<std::uint8_t>{2, 0, 1}));
  expect_random_access(*source);
  EXPECT_EQ(
      source->remarks(),
      std::vector{assumed("labels: whole numbers up to 2 taken as 3 classes; --no-classes keeps them as numbers")});
}

TEST_F(NpyTest, KeepsNumbersIfToldSo) {
  write("x.npy", x_);
  write("y.npy", npy("<i4", "(3,)", bytes<std::int32_t>({0, 2, 1})));
  const auto source = open({.no_classes = true});
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::int32, {}}));
  EXPECT_TRUE(source->spec().classes.empty());
  EXPECT_TRUE(source->remarks().empty());
  EXPECT_EQ(values<std::int32_t>(read_split(*source).y), (std::vector<std::int32_t>{0, 2, 1}));
}

TEST_F(NpyTest, DoubtsImagesWhoseChannelsLieElsewhere) {
  write("y.npy", npy("<f4", "(1,)", bytes<float>({1.5F})));
  const auto remarks_of = [&](const std::string& type, const std::string& shape, const std::string& data) {
    write("x.npy", npy(type, shape, data));
    return open()->remarks();
  };
  const std::string pixels(3 * 8 * 8, '\0');
  const std::string numbers = bytes<float>(std::vector<float>(3 * 8 * 8));
  EXPECT_TRUE(remarks_of("|u1", "(1, 8, 8, 3)", pixels).empty());
  EXPECT_TRUE(remarks_of("<f4", "(1, 3, 8, 8)", numbers).empty());
  ASSERT_EQ(remarks_of("|u1", "(1, 3, 8, 8)", pixels).size(), 1u);
  EXPECT_NE(open()->remarks()[0].text.find("3 rows, 8 columns and 8 channels"), std::string::npos);
  ASSERT_EQ(remarks_of("<f4", "(1, 8, 8, 3)", numbers).size(), 1u);
  EXPECT_NE(open()->remarks()[0].text.find("8 channels of 8 x 3"), std::string::npos);
}

TEST_F(NpyTest, DoubtsTargetsThatMayBeClasses) {
  const auto last_remark_on = [&](const std::string& y) {
    write("x.npy", x_);
    write("y.npy", y);
    const std::vector<Remark> remarks = open()->remarks();
    return remarks.empty() ? "" : remarks.back().text;
  };
  EXPECT_NE(
      last_remark_on(npy("<f8", "(3,)", bytes<double>({0, 2, 1}))).find("float64, all of them whole numbers up to 2"),
      std::string::npos);
  EXPECT_EQ(last_remark_on(npy("<f8", "(3,)", bytes<double>({0, 2.5, 1}))), "");
  EXPECT_NE(
      last_remark_on(npy("<f4", "(3, 2)", bytes<float>({0, 1, 1, 0, 0, 1}))).find("2 numbers each, one of them 1"),
      std::string::npos);
  EXPECT_NE(last_remark_on(npy("|u1", "(3, 2)", {"\1\0\1\0\0\1", 6})).find("(argmax)"), std::string::npos);
  EXPECT_EQ(last_remark_on(npy("<f4", "(3, 2)", bytes<float>({0, 1, 1, 1, 0, 0}))), "");
  EXPECT_EQ(last_remark_on(npy("<f4", "(3, 2)", bytes<float>({0, 1, 1, 0, 0, 2}))), "");
}

TEST_F(NpyTest, TellsHowXIsScaledAndDoubtsSwappedFiles) {
  const auto says = [&](const std::string& x, const std::string& y, const std::string& part) {
    write("x.npy", x);
    write("y.npy", y);
    const std::vector<Remark> remarks = open()->remarks();
    return std::ranges::any_of(remarks, [&](const Remark& r) { return r.text.find(part) != std::string::npos; });
  };
  const std::string label = npy("|u1", "(1,)", "a"), image = npy("|u1", "(1, 2, 2)", "abcd");
  EXPECT_TRUE(says(label, image, "y has 4 numbers per sample and x has 1"));
  EXPECT_FALSE(says(image, label, "swapped"));
  EXPECT_FALSE(says(image, label, "255"));
  EXPECT_TRUE(says(npy("<u2", "(1, 2, 2)", "abcdefgh"), label, "x, uint16, is taken as numbers"));
  EXPECT_TRUE(says(npy("|u1", "(1, 2)", "ab"), label, "x, uint8, is taken as levels"));
}

TEST_F(NpyTest, ReadsArchivesStoredAndDeflated) {
  for (const int method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    const auto source = open_npy(write_npz({{"x.npy", x_}, {"y.npy", y_}}, method), {});
    EXPECT_EQ(values<float>(read_split(*source).x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    expect_random_access(*source);
  }
  const auto unnamed = open_npy(write_npz({{"arr_1.npy", y_}, {"arr_0.npy", x_}}, ZIP_CM_STORE), {});
  EXPECT_EQ(values<std::uint8_t>(read_split(*unnamed).y), (std::vector<std::uint8_t>{2, 0, 1}));
}

TEST_F(NpyTest, FindsSplitsByName) {
  const std::string y1 = npy("<i8", "(1,)", bytes<std::int64_t>({300}));
  const std::string x1 = npy("<f4", "(1, 2)", bytes<float>({7, 8}));
  const auto keras = open_npy(
      write_npz({{"x_train.npy", x_}, {"y_train.npy", y_}, {"x_test.npy", x1}, {"y_test.npy", y1}}, ZIP_CM_STORE), {});
  ASSERT_EQ(keras->splits().size(), 2);
  EXPECT_EQ(keras->splits()[0].name, "train");
  EXPECT_EQ(keras->splits()[1].name, "val");
  EXPECT_EQ(keras->spec().y.dtype, core::DType::uint16);  // labels of both splits count
  EXPECT_EQ(keras->spec().classes.size(), 301);
  EXPECT_EQ(values<std::uint16_t>(read_split(*keras, 1).y), (std::vector<std::uint16_t>{300}));
  EXPECT_EQ(values<std::uint16_t>(read_split(*keras, 0).y), (std::vector<std::uint16_t>{2, 0, 1}));
  for (const char* split : {"train", "val", "test"}) {
    write(std::string{split} + "/a.npy", split == std::string{"train"} ? x_ : x1);
    write(std::string{split} + "/b.npy", split == std::string{"train"} ? y_ : y1);
  }
  const auto folders = open_npy(folder_.string(), {.x_name = "a", .y_name = "b"});
  ASSERT_EQ(folders->splits().size(), 3);
  EXPECT_EQ(folders->splits()[2].name, "test");
  expect_usage([&] { open_npy(folder_.string(), {.x_name = "a"}); },
               {"'train/a' has no 'train/y'", "train/b", "--y-name"});
}

TEST_F(NpyTest, TakesInputsAndLabelsInTwoFiles) {
  const std::string x1 = npy("<f4", "(1, 2)", bytes<float>({7, 8}));
  const std::string y1 = npy("|u1", "(1,)", "\2");
  const std::string x = write_npz({{"arr_0.npy", x_}}, ZIP_CM_DEFLATE, "kmnist-train-imgs.npz");
  const std::string y =
      write_npz({{"arr_0.npy", npy("|u1", "(3,)", {2, 0, 1})}}, ZIP_CM_DEFLATE, "kmnist-train-labels.npz");
  static_cast<void>(write_npz({{"arr_0.npy", x1}}, ZIP_CM_DEFLATE, "kmnist-test-imgs.npz"));
  static_cast<void>(write_npz({{"arr_0.npy", y1}}, ZIP_CM_DEFLATE, "kmnist-test-labels.npz"));
  const auto folder = open();
  ASSERT_EQ(folder->splits().size(), 2);
  EXPECT_EQ(folder->splits()[0].n_samples, 3);
  EXPECT_EQ(folder->splits()[1].name, "val");
  EXPECT_EQ(values<float>(read_split(*folder, 1).x), (std::vector<float>{7, 8}));
  EXPECT_EQ(values<std::uint8_t>(read_split(*folder).y), (std::vector<std::uint8_t>{2, 0, 1}));
  const auto two = open_npy(x, {.y_path = y});
  ASSERT_EQ(two->splits().size(), 1);
  EXPECT_EQ(read_split(*two), read_split(*folder));
  expect_usage([&] { open_npy(x, {}); }, {"one array, 'arr_0'", "kmnist-train-imgs.npz", "file of the labels after"});
  expect_usage([&] { open_npy(x, {.y_path = path("kmnist-test-labels.npz")}); }, {"1 labels", "3, one per sample"});
  const std::string both = write_npz({{"x.npy", x_}, {"y.npy", y_}}, ZIP_CM_STORE, "k49-train-imgs.npz");
  expect_usage([&] { open_npy(both, {.y_path = y}); }, {"2 arrays: x.npy, y.npy", "k49-train-imgs.npz"});
  static_cast<void>(write_npz({{"arr_0.npy", y_}}, ZIP_CM_STORE, "k49-train-labels.npz"));
  expect_usage([&] { open(); }, {"'k49-train-imgs.npz' and 'kmnist-train-imgs.npz' may both be the inputs of train"});
  expect_usage([&] { open_idx(folder_.string(), {}); }, {"no IDX files", "lockstep shard import npy"});
}

TEST_F(NpyTest, FindsSplitsNamedAfterImagesAndLabels) {  // as MedMNIST has them
  const auto source = open_npy(write_npz({{"train_images.npy", x_},
                                          {"train_labels.npy", y_},
                                          {"val_images.npy", x_},
                                          {"val_labels.npy", y_},
                                          {"test_images.npy", x_},
                                          {"test_labels.npy", y_}},
                                         ZIP_CM_DEFLATE),
                               {});
  ASSERT_EQ(source->splits().size(), 3);
  EXPECT_EQ(source->splits()[1].name, "val");
  EXPECT_EQ(source->splits()[2].name, "test");
}

TEST_F(NpyTest, NamesMembersThatAreNoArrays) {
  const std::string file =
      write_npz({{"x.npy", x_}, {"y.npy", y_}, {"notes.txt", "a"}, {"meta.json", "b"}}, ZIP_CM_STORE);
  EXPECT_EQ(open_npy(file, {})->remarks().front(), left_out("2 members that are no array: meta.json, ..."));
}

TEST_F(NpyTest, TakesWordsAsClasses) {
  write("x.npy", x_);
  const auto expect_words = [&](const std::string& y) {
    write("y.npy", y);
    const auto source = open();
    EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
    EXPECT_EQ(source->spec().classes, (Strings{"ant", "bee\xc3\xa9\xf0\x9f\x90\x9d"}));
    EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{1, 0, 1}));
    expect_random_access(*source);
    ASSERT_EQ(source->remarks().size(), 1);
    EXPECT_NE(source->remarks()[0].text.find("2 words taken as classes in sorted order: ant, bee"), std::string::npos);
  };
  const std::u32string bee = U"bee\u00e9\U0001f41d", ant = std::u32string{U"ant"} + U'\0' + U'\0',
                       all = bee + ant + bee;
  expect_words(npy("<U5", "(3,)", {reinterpret_cast<const char*>(all.data()), all.size() * 4}));
  const std::string text = "bee\xc3\xa9\xf0\x9f\x90\x9d";
  expect_words(npy("|S9", "(3, 1)", text + std::string{"ant\0\0\0\0\0\0", 9} + text));
  expect_usage([&] { open({.no_classes = true}); }, {"labels that are words", "y.npy", "leave out --no-classes"});
}

TEST_F(NpyTest, RefusesWordsThatNameNoClass) {
  write("x.npy", x_);
  const auto expect = [&](const std::string& y, std::initializer_list<const char*> words) {
    write("y.npy", y);
    expect_usage([&] { open(); }, words);
  };
  expect(npy("|S1", "(3,)", {'a', '\0', 'b'}), {"an empty label", "y.npy, row 1"});
  expect(npy("|S1", "(3,)", "a\xe9z"), {"not UTF-8", "y.npy, row 1"});
  expect(npy("|S3", "(3,)", "abc\xed\xa0\x80xyz"), {"not UTF-8", "row 1"});  // a surrogate
  expect(npy("<U1", "(3,)", bytes<std::uint32_t>({97, 0xffffffff, 98})), {"not UTF-8", "row 1"});
  expect(npy("|S2", "(3, 2)", "a1b1c1a2b2c2"), {"2 words for a sample"});
  expect(npy("|S2", "(3,)", "a1b1c"), {"5 bytes of data, truncated"});
  expect(npy("<U99999999999999999999", "(3,)", "a"), {"words of type", "U1 to U4096"});
  expect(npy("|S0", "(3,)", ""), {"words of type"});
  expect(npy("|S4096", "(4503599627370496,)", "a"), {"larger than any file"});
  std::string many;
  for (int i = 0; i < 70000; ++i) many += std::to_string(100000 + i);
  write("x.npy", npy("|u1", "(70000,)", std::string(70000, 'x')));
  expect(npy("|S6", "(70000,)", many), {"too many different labels", "row 65536", "at most 65536"});
  for (const char* split : {"train", "val"}) write(std::string{"x_"} + split + ".npy", x_);
  std::filesystem::remove(path("x.npy"));
  write("y_train.npy", npy("|S1", "(3,)", "aba"));
  write("y_val.npy", npy("<u2", "(3,)", bytes<std::uint16_t>({9, 9, 9})));
  expect_usage([&] { open(); }, {"labels that are numbers", "y_val.npy", "words, as in"});
}

TEST_F(NpyTest, ComparesAHeaderBeforeItUnpacks) {
  std::string truncated = npy("|u1", "(1000000000000,)", std::string(1 << 20, 'x'));
  const std::string file = write_npz({{"x.npy", truncated}, {"y.npy", y_}}, ZIP_CM_DEFLATE);
  expect_usage([&] { open_npy(file, {}); }, {"a.npz, member x.npy", "1000000000128 bytes, as the array's header says"});
  expect_usage(
      [&] {
        open_npy(write_npz({{"x.npy", npy("|O", "(9,)", "?")}, {"y.npy", y_}}, ZIP_CM_STORE), {});
      },
      {"pickled", "member x.npy"});
}

TEST_F(NpyTest, KeepsEveryType) {
  write("y.npy", npy("<f8", "(2, 1)", bytes<double>({0.5, -1})));
  const std::vector<std::pair<std::string, core::DType>> types{
      {"|b1", core::DType::uint8},   {"|i1", core::DType::int8},    {"|u1", core::DType::uint8},
      {"<i2", core::DType::int16},   {"<u2", core::DType::uint16},  {"<i4", core::DType::int32},
      {"<u4", core::DType::uint32},  {"<i8", core::DType::int64},   {"<u8", core::DType::uint64},
      {"<f2", core::DType::float16}, {"<f4", core::DType::float32}, {"<f8", core::DType::float64}};
  for (const auto& [type, dtype] : types) {
    std::string data;
    for (std::size_t i = 0; i < 2 * core::size_of(dtype); ++i) data.push_back(static_cast<char>(i + 1));
    write("x.npy", npy(type, "(2,)", data));
    const auto source = open();
    EXPECT_EQ(source->spec().x, (ArraySpec{dtype, {}})) << type;
    EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::float64, {1}})) << type;
    EXPECT_EQ(bytes(values<char>(read_split(*source).x)), data) << type;
    EXPECT_TRUE(source->spec().classes.empty());
  }
}

TEST_F(NpyTest, TakesOnlySmallIntegersAsClasses) {
  write("x.npy", x_);
  write("y.npy", npy("<i4", "(3, 1)", bytes<std::int32_t>({0, 65535, 1})));
  EXPECT_EQ(open()->spec().y, (ArraySpec{core::DType::uint16, {}}));
  EXPECT_EQ(open()->spec().classes.size(), 65536);
  for (const std::int32_t odd : {-1, 65536}) {
    write("y.npy", npy("<i4", "(3,)", bytes<std::int32_t>({0, odd, 1})));
    const auto source = open();
    EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::int32, {}}));
    EXPECT_TRUE(source->spec().classes.empty());
    EXPECT_EQ(values<std::int32_t>(read_split(*source).y), (std::vector<std::int32_t>{0, odd, 1}));
    ASSERT_EQ(source->remarks().size(), 1);
    EXPECT_NE(source->remarks()[0].text.find("not taken as classes"), std::string::npos);
  }
  write("y.npy", npy("<i4", "(3, 2)", bytes<std::int32_t>({0, 1, 2, 3, 4, 5})));
  EXPECT_EQ(open()->spec().y, (ArraySpec{core::DType::int32, {2}}));
}

TEST_F(NpyTest, ReadsNewerHeaders) {
  write("y.npy", y_);
  for (const char version : {'\2', '\3'}) {
    const std::string header = "{\"shape\":(3 ,2), \"descr\":\"<f4\",\"fortran_order\":False}";
    write("x.npy", "\x93NUMPY" + std::string{version, '\0', static_cast<char>(header.size()), '\0', '\0', '\0'} +
                       header + bytes<float>({1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(values<float>(read(*open(), 0, 2, 1).x), (std::vector<float>{5, 6}));
  }
}

TEST_F(NpyTest, RefusesWhatItCannotStore) {
  write("y.npy", y_);
  const std::string data(24, '\0');
  const auto expect = [&](const std::string& file, std::initializer_list<const char*> words) {
    write("x.npy", file);
    expect_usage([&] { open(); }, words);
  };
  expect(npy("<f4", "(3, 2)", data, "True"), {"x.npy", "column by column", "ascontiguousarray"});
  expect(npy("|O", "(3,)", data), {"pickled", "x.npy, byte"});
  expect(npy(">f4", "(3, 2)", data), {"big-endian", "newbyteorder"});
  expect(npy("<c8", "(3,)", data), {"type '<c8'", "float32"});
  expect(npy("<U2", "(3,)", data), {"type '<U2'"});
  expect(npy("", "(3,)", data), {"type ''"});
  expect(npy("<f4", "()", "1234"), {"a single number"});
  expect(npy("<f4", "(0, 2)", ""), {"empty array", "[0, 2]"});
  expect(npy("<f4", "(3, 2)", data.substr(1)),
         {"x.npy", "23 bytes of data, truncated", "24 bytes: 3 samples of float32 [2]"});
  expect(npy("<f4", "(3, 2)", data + "x"), {"25 bytes of data, more than"});
  expect(npy("<f4", "(2, 3)", data), {"3 labels", "2, one per sample"});
  expect(npy("<f4", "(4611686018427387904, 4)", data), {"larger than any file"});
  expect(npy("<f4", "(99999999999999999999,)", data), {"damaged header", "2^64"});
  expect("\x93NUMPY\4" + std::string(20, '\0'), {"format version 4", "byte 6"});
  expect("\x93NUMPX", {"not an .npy file"});
  expect("", {"an empty file"});
  expect(x_.substr(0, 40), {"x.npy", "ends after 40 bytes"});
  expect("\x93NUMPY\2" + std::string(1, '\0') + "\xff\xff\xff\xff", {"a header of 4294967295 bytes"});
}

TEST_F(NpyTest, RefusesDamagedHeaders) {
  write("y.npy", y_);
  for (const char* header : {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'descr': '<f4'}", "{'descr' '<f4'}",
                             "{'descr': '<f4", "{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 2)}",
                             "{'descr': [('a', '<f4')]}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2)}",
                             "{'other': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)} x"}) {
    const std::string length{static_cast<char>(std::strlen(header)), '\0'};
    write("x.npy", "\x93NUMPY" + std::string{'\1', '\0'} + length + header + std::string(24, '\0'));
    expect_usage([&] { open(); }, {"x.npy, byte"});
  }
}

TEST_F(NpyTest, RefusesDamagedArchives) {
  expect_usage([&] { open_npy(path("none"), {}); }, {"none", "No such file"});
  expect_usage([&] { open_npy(write("x.npz", x_), {}); },
               {"x.npz", "this is one NumPy array", "rename the file, so that it ends in .npy"});
  expect_usage([&] { open_npy(write("x.npz", ""), {}); }, {"x.npz", "an empty file"});
  expect_usage(
      [&] {
        open_npy(write_npz({{"a.npy", x_}}, ZIP_CM_STORE), {});
      },
      {"one array, 'a'", "a.npz", "labels after it"});
  const std::string file = write_npz({{"x.npy", x_}, {"y.npy", y_}}, ZIP_CM_STORE);
  std::string flipped = content(file);
  const std::size_t at = flipped.find(bytes<float>({1, 2, 3}));
  ASSERT_NE(at, std::string::npos);
  flipped[at] = '\1';
  write("a.npz", flipped);
  expect_usage([&] { open_npy(file, {}); }, {"a.npz, member x.npy", "is damaged"});
  write("a.npz", flipped.substr(0, flipped.size() / 2));
  expect_usage([&] { open_npy(file, {}); }, {"a.npz", "a truncated zip archive", "copy or write it again"});
}

TEST_F(NpyTest, RefusesAnArrayThatIsInTheArchiveTwice) {
  const std::string file = write_npz({{"x.npy", x_}, {"z.npy", x_}, {"y.npy", y_}}, ZIP_CM_STORE);
  std::string twice = content(file);
  for (std::size_t at = 0; (at = twice.find("z.npy", at)) != std::string::npos;) twice[at] = 'x';
  write("a.npz", twice);
  expect_usage([&] { open_npy(file, {}); }, {"a.npz", "the archive has 'x.npy' twice"});
}

TEST_F(NpyTest, SaysThatAFileIsTruncatedOrOfAnotherEnding) {
  write("y.npy", y_);
  const std::string archive = content(write_npz({{"x.npy", x_}}, ZIP_CM_STORE));
  std::filesystem::remove(path("a.npz"));
  const auto expect = [&](const std::string& x, std::initializer_list<const char*> words) {
    write("x.npy", x);
    expect_usage([&] { open(); }, words);
  };
  for (const std::size_t size : {1, 5, 6, 7}) expect(x_.substr(0, size), {"x.npy", "a truncated .npy file"});
  for (const std::size_t size : {8, 9, 20, 130}) expect(x_.substr(0, size), {"x.npy", "truncated"});
  expect("", {"x.npy", "an empty file"});
  expect(archive, {"x.npy", "this is a zip archive", "rename the file, so that it ends in .npz"});
}

}  // namespace
}  // namespace lockstep::data
