// lockstep shard import: what is well-formed and perhaps not meant is told at the end and kept in the manifest, the
// same by any number of ranks; nothing of it changes what is stored.
#include <cstring>
#include <filesystem>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::has;

class ShardDoubts : public support::InFolder {};

/// A file of NumPy's.
template <class T>
std::string npy_of(const std::string& type, const std::string& shape, const std::vector<T>& values) {
  const std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }\n";
  std::string file = std::string{"\x93NUMPY\x01\x00", 8} + static_cast<char>(header.size()) + '\0' + header;
  const std::size_t begin = file.size();
  file.resize(begin + values.size() * sizeof(T));
  std::memcpy(file.data() + begin, values.data(), values.size() * sizeof(T));
  return file;
}

std::string manifest_of(const std::string& folder) {
  return support::files_here().at("./" + folder + "/manifest.json");
}

/// Imports by one and by three ranks: each of `says` stands at the end and in the manifest, in the same words.
void expect_said(const std::string& what, const std::vector<std::string>& says) {
  for (const int n_ranks : {1, 3}) {
    const std::string out = "of" + std::to_string(n_ranks);
    fs::remove_all(out);
    const Ended told = support::expect_done(
        support::lockstep_on, "shard import " + what + " --shard-size 64 --chunk-size 16 --out " + out, n_ranks);
    for (const std::string& line : says) {
      EXPECT_TRUE(has(told.out, line)) << line << " in\n" << told.out;
      EXPECT_TRUE(has(manifest_of(out), line)) << line;
    }
  }
  EXPECT_EQ(manifest_of("of1"), manifest_of("of3"));
}

void expect_unsaid(const std::string& what, const std::vector<std::string>& words) {
  fs::remove_all("plain");
  const Ended told = support::expect_done(support::lockstep_on, "shard import " + what + " --out plain");
  for (const std::string& word : words) EXPECT_FALSE(has(told.out, word)) << word << " in\n" << told.out;
}

TEST_F(ShardDoubts, WholeNumbersThatFloat32LacksAreCounted) {
  write("n/x.npy", npy_of<std::int64_t>("<i8", "3, 2", {1, 16777217, 3, 4, -16777219, 5}));
  write("n/y.npy", npy_of<double>("<f8", "3,", {0.5, 20000001, 1e300}));
  expect_said("npy n",
              {"warning: train: 2 of 6 values of x are rounded in training, as float32 does not hold these whole "
               "numbers, such as 16777217 (as float32 16777216); ids are not",
               "warning: train: 1 of 3 values of y is rounded in training, as float32 does not hold this whole "
               "number, such as 20000001 (as float32 20000000)",
               "warning: train: 1 of 3 values of y is beyond float32, in which training computes, such as "
               "1e+300 (as float32 inf)"});
  write("n/x.npy", npy_of<std::int64_t>("<i8", "3, 2", {1, 16777216, 3, 4, -16777220, 5}));
  write("n/y.npy", npy_of<double>("<f8", "3,", {0.5, 20000002, 0.1}));
  expect_unsaid("npy n", {"float32 "});
}

TEST_F(ShardDoubts, TheSamePictureInTrainAndValIsTold) {
  for (const std::string file : {"train/a/1", "train/b/2", "val/a/3", "val/b/4"})
    write("i/" + file + ".ppm", "P6 1 1 255 ab" + file.substr(file.size() - 1));
  write("i/train/b/0.ppm", "P6 1 1 255\nxyz");
  write("i/val/a/5.ppm", "P6 # another file of the same pixels\n1 1 255\nxyz");
  expect_said("images i", {"warning: val: 1 of 3 samples has an x that train has as well, such as val/a/5.ppm and "
                           "train/b/0.ppm"});
  expect_said("images i --keep-encoded", {});
  EXPECT_FALSE(has(manifest_of("of1"), "as well")) << "other bytes";
  write("i/val/b/6.ppm", "P6 1 1 255\nxyz");
  expect_said("images i --keep-encoded", {"val: 1 of 4 samples has an x that train has as well, such as val/b/6.ppm"});
}

TEST_F(ShardDoubts, WhatImagesBecomeAndWhatIsBesideThemIsTold) {
  write("i/a/1.ppm", "P6 1 1 255 abc");
  write("i/a/2.pgm", "P5 1 1 255 d");
  write("i/a/3.webp", "RIFF....WEBPVP8 ");
  write("i/a/.x/4.png", "");
  write("i/e\xcc\x81/5.png", "P6 1 1 255 xyz");
  for (const std::string flags : {"", " --keep-encoded"})
    expect_said("images i" + flags,
                {"changed: 1 image in gray: each becomes RGB with three equal channels; --gray stores one channel (it "
                 "is a/2.pgm)",
                 "note: 1 image in another format than the name says: the content counts (it is e",
                 "left out: 1 image not named as JPEG, PNG, PPM or PGM: a/3.webp (this is WebP: convert it to PNG or "
                 "JPEG)",
                 "left out: 1 hidden file or folder (named with a dot, or __MACOSX), 1 of them with images: a/.x",
                 "changed: 1 class name in another form of Unicode is converted to the composed form (NFC), such as "
                 "'\xc3\xa9'"});
}

TEST_F(ShardDoubts, RowsThatAreThereTwiceAreTold) {
  write("t.csv", "a,b,y\n1,2,0\n3,4,1\n1,2,0\n5,6,1\n3,4,0\n");
  expect_said("csv t.csv",
              {"warning: train: 2 of 5 samples repeat the x of an earlier one, 1 of them with another class, "
               "such as sample 4 and sample 1"});
  std::string rows = "a,y\n";
  for (int i = 0; i < 40; ++i) rows += std::to_string(i % 2) + ",0.5\n";
  write("t.csv", rows);
  expect_said("csv t.csv --val 0.2", {"warning: val: 8 of 8 samples have an x that train has as well, such as sample ",
                                      "note: train: 30 of 32 samples repeat the x of an earlier one, such as sample "});
}

TEST_F(ShardDoubts, PairsThatAreRatedTwiceAreTold) {
  write("ratings.csv", "userId,movieId,rating,timestamp\n7,300,4.5,1\n3,50,0.5,2\n7,300,2,3\n");
  expect_said(
      "movielens ratings.csv",
      {"note: 2 users and 2 items, ratings from 0.5 to 4.5",
       "note: train: 1 of 3 samples repeats the x of an earlier one, 1 of them with another y, such as rating 2 "
       "(user 7, item 300) and rating 0 (user 7, item 300)"});
}

TEST_F(ShardDoubts, OnlyZerosThatAreNoIdsAreDoubted) {
  write("ratings.csv", "userId,movieId,rating,timestamp\n1,1,4.5,1\n2,2,4.5,1\n");
  expect_unsaid("movielens ratings.csv", {"zeros alone"});
  write("n/x.npy", npy_of<std::uint8_t>("|u1", "3, 2, 2", {1, 200, 3, 4, 0, 0, 0, 0, 9, 8, 7, 6}));
  write("n/y.npy", npy_of<std::int64_t>("<i8", "3,", {0, 1, 0}));
  expect_said("npy n",
              {"warning: train: the x of 1 of 3 samples is zeros alone, the first is sample 1: see that it was "
               "written"});
}

TEST_F(ShardDoubts, SplitsThatDoNotFitAreTold) {
  write("s/x_train.npy", npy_of<float>("<f4", "2, 2", {1, 2, 3, 4}));
  write("s/y_train.npy", npy_of<std::int32_t>("<i4", "2,", {0, 1}));
  write("s/x_val.npy", npy_of<float>("<f4", "3, 2", {5, 6, 7, 8, 0, 0}));
  write("s/y_val.npy", npy_of<std::int32_t>("<i4", "3,", {0, 2, 1}));
  expect_said("npy s", {"warning: val has 3 samples and train 2: see that they are not swapped",
                        "warning: val: 1 class of it has no sample in train: 2",
                        "warning: val: the x of 1 of 3 samples is zeros alone, the first is sample 2 of val"});
}

// What goes into shards is as before, and so are sets that are made of sets.
TEST_F(ShardDoubts, NothingElseIsChanged) {
  const auto made = [](const std::string& line) { return support::expect_done(support::lockstep_on, "shard " + line); };
  EXPECT_FALSE(has(made("synth ratings --samples 500 --users 3 --items 3 --out s").out, "repeat"));
  EXPECT_FALSE(has(made("pack s --out p").out, "repeat"));
  made("synth ratings --samples 400 --users 3 --items 3 --seed 2 --out t");
  EXPECT_TRUE(has(made("merge s t --out m").out, "samples repeat the x of an earlier one"));
  EXPECT_TRUE(has(made("split m --val 0.1 --out v").out, "an x that train has as well"));
}

}  // namespace
}  // namespace lockstep::training
