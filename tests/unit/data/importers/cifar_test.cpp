#include "unit/data/importers/fixture.hpp"

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

std::string little_endian(std::size_t value, int n_bytes) {
  std::string text;
  for (int i = 0; i < n_bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return text;
}

// Pickles as Python 2 wrote those of CIFAR: protocol 2, with a memo of everything.
std::string pickled(const std::string& text) {
  return text.size() < 256 ? "U" + little_endian(text.size(), 1) + text : "T" + little_endian(text.size(), 4) + text;
}
std::string pickled(int number) { return "K" + little_endian(static_cast<std::size_t>(number), 1); }
std::string pickled_list(const std::vector<std::string>& items) {
  std::string text = "]q\1(";
  for (const std::string& item : items) text += item;
  return text + "e";
}
std::string pickled_dictionary(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text = "\x80\2}r" + little_endian(70000, 4) + "(";
  for (const auto& [key, value] : members) text += pickled(key) + value;
  return text + "u.";
}
/// With a number of bytes behind the type, as NumPy writes it.
std::string pickled_array(const std::string& shape, const std::string& data, const std::string& type = "u1") {
  return "cnumpy.core.multiarray\n_reconstruct\nq\7cnumpy\nndarray\nq\10" + pickled(0) + "\x85q\11U\1b\x87Rq\12(K\1" +
         shape + "cnumpy\ndtype\n" + pickled(type) + pickled(0) + pickled(1) +
         "\x87R(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff" + pickled(0) + "tb\x89" + pickled(data) + "tb";
}
std::string by_columns(std::string array) {
  const std::string before_flag = "tb\x89";
  return array.replace(array.find(before_flag), before_flag.size(), "tb\x88");
}
std::string image_shape(int n) { return pickled(n) + "M" + little_endian(3072, 2) + "\x86"; }
std::string planes(int seed) { return record("", seed); }

class CifarTest : public ImporterTest {
 protected:
  void expect_refused(const std::string& batch, std::initializer_list<const char*> words) const {
    write("cifar-10-batches-py/test_batch", batch);
    expect_usage([&] { open_cifar10(folder_.string(), {}); }, words);
  }
};

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
  EXPECT_EQ(source->remarks(), (std::vector{assumed("batches.meta.txt does not exist: classes are numbers"),
                                            warning("data_batch_3.bin does not exist and is left out"),
                                            warning("data_batch_4.bin does not exist and is left out"),
                                            warning("data_batch_5.bin does not exist and is left out"),
                                            assumed("test_batch.bin is the split val")}));
}

TEST_F(CifarTest, NamesTheCopyThatItDoesNotRead) {
  const auto is_last = [&](const std::string& text) {
    const std::vector<Remark> remarks = open_cifar10(folder_.string(), {})->remarks();
    return !remarks.empty() && remarks.back() == left_out(text);
  };
  write("cifar-10-batches-py/test_batch", "");
  write("cifar-10-batches-bin/test_batch.bin", record("\4", 40));
  EXPECT_TRUE(
      is_last("a second copy of the set (cifar-10-batches-py/test_batch, ...), as "
              "cifar-10-batches-bin/test_batch.bin is read"));
  write("data_batch_2.bin", record("\4", 40));
  EXPECT_TRUE(is_last("a second copy of the set (cifar-10-batches-py/test_batch, ...), as data_batch_2.bin is read"));
  EXPECT_EQ(open_cifar10(folder_.string(), {})->splits()[0].name, "train");
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
  EXPECT_EQ(source->remarks(), std::vector{left_out("the coarse labels: classes are the fine ones")});
  expect_pixels(read_split(*source).x, 0, 1);
}

TEST_F(CifarTest, ReadsTheVersionForPython) {
  write("cifar-10-batches-py/data_batch_1",
        pickled_dictionary({{"batch_label", pickled("training batch 1 of 5")},
                            {"labels", pickled_list({pickled(6), pickled(9)})},
                            {"data", pickled_array(image_shape(2), planes(10) + planes(20))},
                            {"filenames", pickled_list({pickled("a.png"), pickled("b.png")})}}));
  write("cifar-10-batches-py/test_batch", pickled_dictionary({{"data", pickled_array(image_shape(1), planes(40))},
                                                              {"labels", pickled_list({pickled(3)})}}));
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(pickled("name" + std::to_string(i)));
  write("cifar-10-batches-py/batches.meta", pickled_dictionary({{"label_names", pickled_list(names)}}));
  const auto source = open_cifar10(folder_.string(), {});
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::uint8, {32, 32, 3}}));
  EXPECT_EQ(source->spec().classes[9], "name9");
  ASSERT_EQ(source->splits().size(), 2);
  const Samples train = read_split(*source);
  EXPECT_EQ(values<std::uint8_t>(train.y), (std::vector<std::uint8_t>{6, 9}));
  for (std::size_t i = 0; i < 2; ++i) expect_pixels(train.x, i, static_cast<int>(10 * i + 10));
  expect_pixels(read_split(*source, 1).x, 0, 40);
  expect_random_access(*source);
  EXPECT_EQ(read_split(*open_cifar10(path("cifar-10-batches-py"), {})), train);
}

TEST_F(CifarTest, TakesTheFineLabelsOfPickles) {
  write("train", pickled_dictionary({{"coarse_labels", pickled_list({pickled(19)})},
                                     {"fine_labels", "]" + pickled(99) + "a"},
                                     {"data", pickled_array(image_shape(1), planes(7))}}));
  const auto source = open_cifar100(folder_.string(), {});
  EXPECT_EQ(values<std::uint8_t>(read_split(*source).y), (std::vector<std::uint8_t>{99}));
  expect_pixels(read_split(*source).x, 0, 7);
}

TEST_F(CifarTest, TakesPickledArraysByColumns) {
  const std::string rows = planes(10) + planes(20) + planes(30);
  std::string columns;
  for (std::size_t j = 0; j < 3072; ++j)
    for (std::size_t i = 0; i < 3; ++i) columns.push_back(rows[i * 3072 + j]);
  write("test_batch", pickled_dictionary({{"labels", pickled_list({pickled(1), pickled(2), pickled(3)})},
                                          {"data", by_columns(pickled_array(image_shape(3), columns))}}));
  const auto source = open_cifar10(folder_.string(), {});
  for (std::size_t i = 0; i < 3; ++i) expect_pixels(read_split(*source).x, i, static_cast<int>(10 * i + 10));
}

TEST_F(CifarTest, RunsNothingOfAPickle) {
  for (const char* name :
       {"os\nsystem\n", "posix\nsystem\n", "__builtin__\neval\n", "numpy\nload\n", "numpy.core.multiarray\nndarray\n"})
    expect_refused("\x80\2c" + std::string{name} + pickled("touch here") + "\x85R.",
                   {"test_batch, byte 2", "which is not run"});
  const std::string ndarray = "cnumpy\nndarray\n", dtype = "cnumpy\ndtype\n";
  expect_refused("\x80\2" + ndarray + pickled(1) + "\x85R.", {"a call of something other than a NumPy array"});
  expect_refused("\x80\2" + pickled(1) + pickled(1) + "\x85R.", {"a call of something other than a NumPy array"});
  expect_refused("\x80\2" + dtype + pickled("O8") + "\x85R.", {"type 'O8'", "(u1)"});
  expect_refused("\x80\2" + dtype + ndarray + "\x85R.", {"an array that NumPy does not write like this"});
  expect_refused("\x80\2" + dtype + pickled(std::string(300, 'u')) + "\x85R.", {"type 'uuuuuuuu'"});
  for (const char opcode : {'i', 'o', '\x81', '\x82', 'P', 'Q', 'S', 'I', 'B', '\x95', '0', '2', '\0'})
    expect_refused(std::string{"\x80\2"} + opcode + std::string(20, '\n'),
                   {"test_batch, byte 2", "opcode 0x", "nothing is run"});
  expect_refused("\x80\4}.", {"protocol 4", "byte 0"});
}

TEST_F(CifarTest, RefusesDamagedPickles) {
  const std::string labels = pickled_list({pickled(6)});
  const auto batch = [&](const std::string& array) {
    return pickled_dictionary({{"labels", labels}, {"data", array}});
  };
  const std::string good = batch(pickled_array(image_shape(1), planes(1)));
  write("cifar-10-batches-py/test_batch", good);
  EXPECT_EQ(open_cifar10(folder_.string(), {})->splits()[0].n_samples, 1);
  for (std::size_t size = 0; size < good.size(); size += size < 300 || size + 40 > good.size() ? 1 : 100)
    expect_refused(good.substr(0, size), {"test_batch"});
  expect_refused(good + ".", {"an end before the end of the file"});
  expect_refused(
      "\x80\2T\xff\xff\xff\xff"
      "abc",
      {"a text of 4294967295 bytes, where 3 are left", "byte 7"});
  expect_refused("\x80\2\x8a\xff", {"a number of 255 bytes"});
  expect_refused("\x80\2c" + std::string(100, 'a'), {"a name that does not end"});
  expect_refused("\x80\2.", {"a missing value"});
  expect_refused("\x80\2}(.", {"a missing value"});
  expect_refused("\x80\2}}.", {"values left over"});
  expect_refused("\x80\2e", {"a missing mark"});
  expect_refused("\x80\2h\1", {"value 1 is used before"});
  expect_refused("\x80\2}(K\1u.", {"items without a list"});
  expect_refused("\x80\2K\1K\1a.", {"items without a list"});
  expect_refused("\x80\2]q\1h\1a.", {"the content is not a dictionary"});  // a list in itself
  expect_refused("\x80\2" + std::string(2000000, ')') + ".", {"more than a million values"});
  expect_refused("\x80\2K\1.", {"the content is not a dictionary"});
  const std::string huge = "J\xff\xff\xff\x7f", minus = "J\xff\xff\xff\xff";
  expect_refused(batch(pickled_array(huge + huge + huge + "\x87", planes(1))), {"with a dimension of 2147483647"});
  expect_refused(batch(pickled_array(huge + huge + "\x86", planes(1))), {"bytes with 3072 of data"});
  expect_refused(batch(pickled_array(minus + minus + "\x86", planes(1))), {"with a dimension of -1"});
  expect_refused(batch(pickled_array("(" + std::string(33, 'N') + "t", planes(1))), {"33 dimensions"});
  expect_refused(batch(pickled_array(image_shape(1), planes(1), "f4")), {"type 'f4'"});
  expect_refused(batch(pickled_array(image_shape(2), planes(1) + planes(1))),
                 {"1 labels in 'labels'", "2, one for each image"});
  expect_refused(batch(pickled_array(pickled(2) + pickled(3) + "\x86", "abcdef")), {"shape [2, 3]", "[n, 3072]"});
  expect_refused(batch(pickled("abc")), {"'data' is of another type"});
  expect_refused(pickled_dictionary({{"labels", labels}}), {"no 'data'"});
  expect_refused(
      pickled_dictionary({{"labels", pickled_list({pickled(10)})}, {"data", pickled_array(image_shape(1), planes(1))}}),
      {"label 10 in 'labels', record 0", "0 to 9"});
  write("cifar-10-batches-py/test_batch", good);
  write("cifar-10-batches-py/batches.meta", pickled_dictionary({{"label_names", pickled_list({pickled("ant")})}}));
  expect_usage([&] { open_cifar10(folder_.string(), {}); }, {"1 class names", "batches.meta", "10"});
}

TEST_F(CifarTest, RefusesWhatIsNoCifar) {
  expect_usage([&] { open_cifar10(folder_.string(), {}); }, {"no CIFAR files", "data_batch_1.bin"});
  expect_usage([&] { open_cifar100(path("none"), {}); }, {"no such folder"});
  write("test_batch.bin", record("\4", 40) + "x");
  expect_usage([&] { open_cifar10(folder_.string(), {}); },
               {"test_batch.bin", "3074 bytes, 1 past", "records of 3073"});
  write("test_batch.bin", "");
  expect_usage([&] { open_cifar10(folder_.string(), {}); }, {"test_batch.bin", "an empty file", "at least one"});
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
