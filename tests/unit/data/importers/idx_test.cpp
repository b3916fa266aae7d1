#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift & 0xff));
  return text;
}

/// `n` images of 3 x 2 whose pixels count up.
std::string images(std::uint32_t n) {
  std::string text = big_endian(0x803) + big_endian(n) + big_endian(3) + big_endian(2);
  for (std::uint32_t i = 0; i < 6 * n; ++i) text.push_back(static_cast<char>(i));
  return text;
}

std::string labels(const std::string& values) {
  return big_endian(0x801) + big_endian(static_cast<std::uint32_t>(values.size())) + values;
}

class IdxTest : public ImporterTest {
 protected:
  std::unique_ptr<Source> open() const { return open_idx(folder_.string(), {}); }
};

TEST_F(IdxTest, ReadsBothSplits) {
  write("train-images-idx3-ubyte", images(3));
  write("train-labels-idx1-ubyte", labels({9, 0, 1}));
  write("t10k-images-idx3-ubyte", images(2));
  write("t10k-labels-idx1-ubyte", labels({2, 3}));
  const auto source = open();
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::uint8, {3, 2}}));
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  ASSERT_EQ(source->splits().size(), 2);
  EXPECT_EQ(source->splits()[0].name, "train");
  EXPECT_EQ(source->splits()[0].n_samples, 3);
  EXPECT_EQ(source->splits()[1].name, "val");
  EXPECT_EQ(source->splits()[1].n_samples, 2);
  EXPECT_EQ(source->remarks().front(), assumed("t10k is the split val"));
  const Samples train = read_split(*source, 0);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(train.x.at(i), std::byte(i));
  EXPECT_EQ(values<std::uint8_t>(train.y), (std::vector<std::uint8_t>{9, 0, 1}));
  EXPECT_EQ(values<std::uint8_t>(read(*source, 1, 1, 1).y), (std::vector<std::uint8_t>{3}));
  expect_random_access(*source, 0);
}

TEST_F(IdxTest, FindsGzipAndPointsAndEitherPair) {
  write_gzip("t10k-images.idx3-ubyte.gz", images(4));
  write_gzip("t10k-labels-idx1-ubyte.gz", labels({1, 2, 3, 4}));
  const auto source = open();
  ASSERT_EQ(source->splits().size(), 1);
  EXPECT_EQ(source->splits()[0].name, "val");
  EXPECT_EQ(values<std::uint8_t>(read_split(*source).x).at(23), 23);
  expect_random_access(*source);
}

TEST_F(IdxTest, NamesTheFilesThatItDoesNotRead) {
  write("train-images-idx3-ubyte", images(2));
  write_gzip("train-images.idx3-ubyte.gz", images(3));
  write_gzip("train-images-idx3-ubyte.gz", images(3));
  write("train-labels-idx1-ubyte", labels({9, 0}));
  const auto source = open();
  EXPECT_EQ(source->splits()[0].n_samples, 2);
  ASSERT_EQ(source->remarks().size(), 3);
  EXPECT_EQ(source->remarks()[0], left_out("train-images-idx3-ubyte.gz, as train-images-idx3-ubyte is read"));
  EXPECT_EQ(source->remarks()[1], left_out("train-images.idx3-ubyte.gz, as train-images-idx3-ubyte is read"));
}

TEST_F(IdxTest, FindsWhereTorchvisionPutsThem) {
  expect_usage([&] { open(); }, {"no IDX files"});
  for (const char* set : {"MNIST", "FashionMNIST"}) {
    write(std::string{set} + "/raw/train-images-idx3-ubyte", images(3));
    write(std::string{set} + "/raw/train-labels-idx1-ubyte", labels({9, 0, 1}));
    EXPECT_EQ(open_idx(path(set), {})->splits()[0].n_samples, 3);
  }
  expect_usage([&] { open(); }, {"several sets", "/MNIST/raw, ", "/FashionMNIST/raw", "give the folder of one"});
  std::filesystem::remove_all(path("FashionMNIST"));
  EXPECT_EQ(values<std::uint8_t>(read_split(*open()).y), (std::vector<std::uint8_t>{9, 0, 1}));
  std::filesystem::remove(path("MNIST/raw/train-labels-idx1-ubyte"));
  expect_usage([&] { open_idx(path("MNIST"), {}); }, {"images without labels", "MNIST/raw/train-images"});
}

TEST_F(IdxTest, TellsGzipByItsContent) {
  const std::string packed = content(write_gzip("packed", images(2)));
  write("train-images-idx3-ubyte", packed);
  write("train-labels-idx1-ubyte.gz", labels({1, 2}));
  EXPECT_EQ(values<std::uint8_t>(read_split(*open()).x).at(11), 11);
}

TEST_F(IdxTest, ReadsGzipOfSeveralMembers) {
  const std::string whole = images(2);
  const std::string one = content(write_gzip("a", whole.substr(0, 20)));
  const std::string two = content(write_gzip("b", whole.substr(20)));
  write("train-images-idx3-ubyte.gz", one + two);
  write("train-labels-idx1-ubyte", labels({1, 2}));
  EXPECT_EQ(values<std::uint8_t>(read_split(*open()).x).at(11), 11);
}

TEST_F(IdxTest, TakesMoreClassesFromTheLabels) {
  write("train-images-idx3-ubyte", images(2));
  write("train-labels-idx1-ubyte", labels({1, 46}));
  const auto source = open();
  EXPECT_EQ(source->spec().classes.size(), 47);
  ASSERT_EQ(source->remarks().size(), 1);
  EXPECT_EQ(source->remarks()[0].text, "45 of 47 classes have no sample");
}

TEST_F(IdxTest, NamesTheMissingFile) {
  write("train-images-idx3-ubyte", images(2));
  expect_usage([&] { open(); }, {"images without labels", "train-labels-idx1-ubyte"});
  std::filesystem::remove(path("train-images-idx3-ubyte"));
  write("t10k-labels-idx1-ubyte", labels("1"));
  expect_usage([&] { open(); }, {"labels without images", "t10k-images-idx3-ubyte"});
  std::filesystem::remove(path("t10k-labels-idx1-ubyte"));
  expect_usage([&] { open(); }, {"no IDX files"});
  expect_usage([&] { open_idx(path("none"), {}); }, {"no such folder"});
}

TEST_F(IdxTest, RefusesDamagedFiles) {
  const std::string good = images(2);
  write("train-labels-idx1-ubyte", labels({1, 2}));
  const auto expect = [&](const std::string& damaged, std::initializer_list<const char*> words) {
    write("train-images-idx3-ubyte", damaged);
    expect_usage([&] { open(); }, words);
  };
  expect("", {"train-images-idx3-ubyte", "ends after 0 bytes"});
  expect(good.substr(0, 10), {"train-images-idx3-ubyte", "ends after 10 bytes"});
  expect(good.substr(0, good.size() - 1), {"train-images-idx3-ubyte", "11 bytes", "truncated", "12 bytes"});
  expect(good + "x", {"train-images-idx3-ubyte", "13 bytes", "more than the header says", "12 bytes"});
  expect(labels({1, 2}), {"0x00000801", "byte 0", "0x00000803", "swapped"});
  expect(images(0), {"empty array", "[0, 3, 2]"});
  write("train-labels-idx1-ubyte", labels({1, 2}).substr(0, 9));
  expect(good, {"train-labels-idx1-ubyte", "1 bytes of data, truncated", "2 bytes"});
  write("train-labels-idx1-ubyte", labels({1, 2}));
  expect(images(3), {"2 labels", "train-labels-idx1-ubyte", "3, one per sample of"});
  const std::string huge = big_endian(0x803) + std::string(12, '\xff');
  expect(huge, {"larger than any file", "4294967295"});
}

TEST_F(IdxTest, RefusesSplitsOfDifferentShape) {
  write("train-images-idx3-ubyte", images(2));
  write("train-labels-idx1-ubyte", labels({1, 2}));
  std::string other = big_endian(0x803) + big_endian(1) + big_endian(2) + big_endian(3) + "123456";
  write("t10k-images-idx3-ubyte", other);
  write("t10k-labels-idx1-ubyte", labels("1"));
  expect_usage([&] { open(); }, {"uint8 [2, 3]", "t10k-images", "uint8 [3, 2]", "train-images"});
}

TEST_F(IdxTest, RefusesDamagedGzip) {
  const std::string good = content(write_gzip("train-images-idx3-ubyte.gz", images(200)));
  write("train-labels-idx1-ubyte", labels(std::string(200, '\1')));
  EXPECT_EQ(open()->splits()[0].n_samples, 200);
  for (const std::size_t size : {good.size() - 1, good.size() / 2, std::size_t{12}, std::size_t{2}}) {
    write("train-images-idx3-ubyte.gz", good.substr(0, size));
    expect_usage([&] { open(); }, {"train-images-idx3-ubyte.gz, byte", "ends before its content"});
  }
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 0x55);
  write("train-images-idx3-ubyte.gz", flipped);
  expect_usage([&] { open(); }, {"train-images-idx3-ubyte.gz, byte", "is damaged"});
  write("train-images-idx3-ubyte.gz", good + "rubbish");
  expect_usage([&] { open(); }, {"is damaged"});
}

}  // namespace
}  // namespace lockstep::data
