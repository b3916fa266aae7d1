#include "importers_fixture.hpp"

namespace lockstep::data {
namespace {

/// One record: the labels, then planes of which pixel i is i + seed, 2 i + seed, 3 i + seed.
std::string record(const std::string& labels, int seed) {
  std::string text = labels;
  for (int channel = 1; channel <= 3; ++channel) {
    for (int i = 0; i < 1024; ++i) text.push_back(static_cast<char>(channel * i + seed));
  }
  return text;
}

void expect_pixels(const std::vector<std::byte>& x, std::size_t sample, int seed) {
  for (int i = 0; i < 1024; ++i) {
    for (int channel = 0; channel < 3; ++channel) {
      const std::size_t at = sample * 3072 + static_cast<std::size_t>(3 * i + channel);
      ASSERT_EQ(x.at(at), std::byte(((channel + 1) * i + seed) & 0xff)) << i << " " << channel;
    }
  }
}

class CifarTest : public ImporterTest {};

TEST_F(CifarTest, ReadsBatchesInTheirOrderAsPixels) {
  write("data_batch_2.bin", record("\3", 30));
  write("data_batch_1.bin", record("\1", 10) + record("\2", 20));
  write("test_batch.bin", record("\4", 40));
  const auto source = open_cifar10(folder_.string(), {});
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::uint8, {32, 32, 3}}));
  EXPECT_EQ(source->spec().classes.size(), 10);
  EXPECT_EQ(source->spec().classes[3], "3");
  ASSERT_EQ(source->splits().size(), 2);
  EXPECT_EQ(source->splits()[0].n_samples, 3);
  EXPECT_EQ(source->splits()[1].name, "val");
  const Samples train = read_split(*source);
  EXPECT_EQ(values<std::uint8_t>(train.y), (std::vector<std::uint8_t>{1, 2, 3}));
  for (std::size_t i = 0; i < 3; ++i) expect_pixels(train.x, i, static_cast<int>(10 * i + 10));
  expect_random_access(*source);
  EXPECT_EQ(source->remarks(), (std::vector<std::string>{"data_batch_3.bin is not there and left out",
                                                         "data_batch_4.bin is not there and left out",
                                                         "data_batch_5.bin is not there and left out"}));
}

TEST_F(CifarTest, ReadsMoreThanOnePiece) {
  std::string batch;
  for (int i = 0; i < 600; ++i) batch += record(std::string(1, static_cast<char>(i % 10)), i);
  write("cifar-10-batches-bin/test_batch.bin", batch);
  const auto source = open_cifar10(folder_.string(), {});
  const Samples samples = read(*source, 0, 1, 599);
  expect_pixels(samples.x, 598, 599);
  EXPECT_EQ(values<std::uint8_t>(samples.y).at(598), 9);
}

TEST_F(CifarTest, TakesTheFineLabelAndTheNames) {
  write("train.bin", record({19, 99}, 1));
  std::string names;
  for (int i = 0; i < 100; ++i) names += "name" + std::to_string(i) + "\r\n";
  write("fine_label_names.txt", names + "\n");
  const auto source = open_cifar100(folder_.string(), {});
  EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{99}));
  EXPECT_EQ(source->spec().classes[99], "name99");
  expect_pixels(read_split(*source).x, 0, 1);
}

TEST_F(CifarTest, RefusesWhatIsNoCifar) {
  expect_usage([&] { open_cifar10(folder_.string(), {}); }, {"no CIFAR files", "data_batch_1.bin"});
  expect_usage([&] { open_cifar100(path("none"), {}); }, {"no such folder"});
  write("test_batch.bin", record("\4", 40) + "x");
  expect_usage([&] { open_cifar10(folder_.string(), {}); },
               {"test_batch.bin", "3074 bytes, 1 past", "multiple of 3073"});
  write("test_batch.bin", "");
  expect_usage([&] { open_cifar10(folder_.string(), {}); }, {"test_batch.bin", "0 bytes"});
  write("test_batch.bin", record("\4", 40));
  write("batches.meta.txt", "airplane\nbird\n");
  expect_usage([&] { open_cifar10(folder_.string(), {}); }, {"2 class names", "batches.meta.txt", "10"});
}

TEST_F(CifarTest, NamesTheByteOfALabelOutOfRange) {
  write("test_batch.bin", record("\4", 40) + record("\12", 40));
  const auto cifar10 = open_cifar10(folder_.string(), {});
  EXPECT_EQ(values<std::uint8_t>(read(*cifar10, 0, 0, 1).y), (std::vector<std::uint8_t>{4}));
  expect_usage([&] { read(*cifar10, 0, 0, 2); }, {"label 10", "test_batch.bin, byte 3073, record 1", "0 to 9"});
  write("test.bin", record({0, 100}, 40));
  const auto cifar100 = open_cifar100(folder_.string(), {});
  expect_usage([&] { read_split(*cifar100); }, {"label 100", "test.bin, byte 1, record 0", "0 to 99"});
}

}  // namespace
}  // namespace lockstep::data
