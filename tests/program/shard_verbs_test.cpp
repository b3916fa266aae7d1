// lockstep shard: what the verbs make of each other's sets, and of damaged ones. Each importer has tests of its own.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_told;
using support::has;
using support::lockstep_on;

class ShardVerbs : public support::InFolder {};

Ended made(const std::string& line) { return support::expect_done(lockstep_on, "shard " + line); }
Ended ran(const std::string& line) { return lockstep_on(support::words_of("shard " + line)); }

/// The files of a set with their bytes.
std::map<std::string, std::string> set(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& [name, bytes] : support::files_here())
    if (name.starts_with("./" + folder + "/")) files[name.substr(folder.size() + 2)] = bytes;
  return files;
}

void expect_same(const std::string& one, const std::string& other) {
  EXPECT_TRUE(set(one) == set(other)) << one << ", " << other;
}

/// Lines of `head`: of each sample of a split.
std::vector<std::string> samples(const std::string& folder, const std::string& split = "train") {
  std::istringstream text{made("head " + folder + " -n 100000 --split " + split).out};
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("id ")) lines.push_back(line.substr(line.find_first_not_of(' ', line.find(' ', 3))));
  return lines;
}

std::vector<std::string> sorted(std::vector<std::string> lines, const std::vector<std::string>& more = {}) {
  lines.insert(lines.end(), more.begin(), more.end());
  std::ranges::sort(lines);
  return lines;
}

void flip(const std::string& path, std::size_t at) {
  std::string bytes = support::files_here()["./" + path];
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0xa5);
  support::InFolder::write(path, bytes);
}

/// A file with NumPy's header, without its padding.
std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  const std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + ",), }";
  return "\x93NUMPY" + std::string{'\1', '\0', static_cast<char>(header.size()), '\0'} + header + data;
}

const std::string idx_images{
    "\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x02\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\xff", 28};
const std::string idx_labels{"\0\0\x08\x01\0\0\0\x03\x07\0\x09", 11};

TEST_F(ShardVerbs, ImportMakesWhatTheOthersRead) {
  write("idx/train-images-idx3-ubyte", idx_images);
  write("idx/train-labels-idx1-ubyte", idx_labels);
  write("torch/MNIST/raw/train-images-idx3-ubyte", idx_images);
  write("torch/MNIST/raw/train-labels-idx1-ubyte", idx_labels);
  expect_told(made("import mnist idx --out m"), 0, {"train 3 in 1 shard"});
  made("import mnist torch --out torch_m");
  expect_same("m", "torch_m");
  made("verify m");
  expect_told(made("head m"), 0, {"id 0", "label 7 ", "x: [1, 2, 3, 4]", "label 9 ", "x: [9, 10, 11, 255]"});
  write("imgs.npy", npy("|u1", "3, 2", "abcdef"));
  write("names.npy", npy("|S1", "3", "wxw"));
  made("import npy imgs.npy names.npy --out pair");
  expect_told(made("head pair"), 0, {"id 1", "label 1 ", "x: [99, 100]"});
  expect_refused(lockstep_on, {"shard import npy imgs.npy --out bad", {"give the file of the labels after it"}});
  write("idx/train-images-idx3-ubyte", idx_images.substr(0, 27));
  expect_refused(lockstep_on, {"shard import mnist idx --out bad", {"train-images-idx3-ubyte"}});
}

TEST_F(ShardVerbs, ImportSaysOnceWhatItTakesLabelsFor) {
  struct Case {
    std::string table;
    std::string flags;
    std::string says;
  };
  const std::string numbers = "a,b,y\n1,2,0\n3,4.5,1\n5,6,0\n";
  int n = 0;
  for (const Case& c :
       {Case{numbers, "", "labels: whole numbers up to 1 taken as 2 classes; --no-classes"},
        Case{numbers, " --no-classes", ""}, Case{numbers, " --x-columns a --y-column b", "y is taken as numbers"},
        Case{"a,species\n1,wasp\n2,ant\n3,wasp\n", "", "labels: 2 words taken as classes in sorted order: ant, wasp"},
        Case{"a,b,y\n1,nan,0.5\n-inf,4,1.5\n5,6,2.5\n", "", "2 of 6 values of x are NaN or infinite"},
        Case{"a,b,y\n1,2,0\n3,4,-1\n5,6,1.5\n", "", "line 3 has '-1', not a whole number from 0 to 65535"},
        Case{"a,b,y\n1,2,0\n3,4,70000\n5,6,1\n", "", "line 3 has '70000', not a whole number from 0 to 65535"}}) {
    write("t.csv", c.table);
    const std::string folder = "c" + std::to_string(n++);
    const Ended imported = made("import csv t.csv --out " + folder + c.flags);
    expect_told(imported, 0, {c.says});
    EXPECT_EQ(imported.out.find("taken as"), imported.out.rfind("taken as")) << imported.out;
    if (c.says.empty()) {
      EXPECT_FALSE(has(imported.out, "classes"));
    }
  }
  expect_told(made("stat c1"), 0, {"float32", "none"});
  expect_told(made("head c0 -n 3"), 0, {"x: [3, 4.5]"});
  expect_told(made("head c2 -n 1"), 0, {"x: 1\n"});
  expect_told(made("head c3"), 0, {"label 1 "});
  write("t.csv", "a,b\033[31m,y\n1,oops,0\n");
  expect_refused(lockstep_on, {"shard import csv t.csv --out bad", {"t.csv", "oops", "b\\x1b[31m"}});
}

// The same wherever the input lies, by however many ranks.
TEST_F(ShardVerbs, WhatAnImportChangesIsKeptInTheManifest) {
  write("in/t.csv", ",big,y\n0,16777217,0\n1,nan,1\n2,3,0\n");
  const std::vector<std::string> notes{"assumed: y is column 2 (y), the last",
                                       "assumed: 3 columns, separated by commas",
                                       "left out: column 0 (no name): it numbers the 3 rows from 0 on",
                                       "changed: 1 whole number of x is rounded",
                                       "assumed: labels: whole numbers up to 1 taken as 2 classes",
                                       "warning: train: 1 of 3 values of x is NaN or infinite"};
  expect_told(made("import csv in/t.csv --out a"), 0, notes);
  support::expect_done(lockstep_on, "shard import csv " + fs::absolute("in/t.csv").string() + " --out b", 3);
  expect_same("a", "b");
  for (const std::string& note : notes) EXPECT_TRUE(has(set("a").at("/manifest.json"), "    \"" + note)) << note;
  expect_told(made("stat a"), 0, notes);
  expect_told(made("stat a --json"), 0, {"\"notes\": [", "left out: column 0"});
  expect_told(made("verify a"), 0, {"is whole"});
  made("pack a --out again");
  expect_same("a", "again");
  write("in/u.csv", ",big,y\n0,16777217,0\n1,nan,1\n2,4,0\n");
  made("import csv in/u.csv --out other");
  made("merge a other --out both");
  EXPECT_TRUE(has(set("both").at("/manifest.json"), notes[2]));
}

TEST_F(ShardVerbs, ImportSaysWhatImagesWentThrough) {
  write("i/Cat/a.ppm", "P6 1 1 15 \x0f\x05\x01");
  write("i/cat/b.ppm", "P6 1 1 15 \x0f\x05\x01");
  write("i/cat/c.ppm", "P6 1 1 255 \x0f\x05");
  const Ended told = made("import images i --skip-bad --out a");
  expect_told(told, 0,
              {"changed: 2 images scaled to 8 bits",
               "left out: 1 damaged sample, as --skip-bad asks; the first is "
               "number 2 of train",
               "warning: the classes 'Cat' and 'cat' differ only by case, blanks"});
  support::expect_done(lockstep_on, "shard import images i --skip-bad --out b --shard-size 1K --chunk-size 3", 2);
  EXPECT_TRUE(has(set("b").at("/manifest.json"), "2 images scaled"));
  expect_refused(lockstep_on,
                 {"shard import images i --keep-encoded --white 1023 --out c", {"--keep-encoded", "--white"}});
}

TEST_F(ShardVerbs, ASplitThatLeavingOutEmptiesIsRefused) {
  const std::string whole = "P6 1 1 255 abc", damaged = "P6 1 1 255 a";
  for (const std::string split : {"train", "val"})
    for (const std::string name : {"/a/1.ppm", "/b/2.ppm", "/c/3.ppm"}) write("i/" + split + name, whole);
  write("i/val/b/2.ppm", damaged);
  expect_told(made("import images i --skip-bad --out one"), 0,
              {"left out: 1 damaged sample", "warning: val: 1 of 3 classes has no sample without the damaged ones: b"});
  write("i/val/a/1.ppm", damaged);
  expect_told(made("import images i --skip-bad --keep-encoded --out two"), 0,
              {"warning: val: 2 of 3 classes have no sample without the damaged ones: a, b"});
  write("i/val/c/3.ppm", damaged);
  for (const std::string flags : {"", " --keep-encoded", " --shuffle"})
    expect_refused(lockstep_on,
                   {"shard import images i --skip-bad --out three" + flags,
                    {"all samples of 'val' are damaged, so --skip-bad leaves none", "val/a/1.ppm", "fix: "}});
}

TEST_F(ShardVerbs, SetsAreDescribedAndWhole) {
  expect_told(made("synth digits --out d --samples 3000 --shard-size 1M --chunk-size 128K"), 0,
              {"train 3000 in ", "val 500 in 1 shard"});
  expect_told(made("stat d"), 0, {"uint8 [28, 28]", "\n", "3000 ", "500 ", "classes"});
  expect_told(made("verify d"), 0, {"is whole: ", " 3500 samples"});
  made("head d --split val -n 1");
  const Ended two = made("head d -n 2");
  expect_told(two, 0, {"id 0", "id 1", "label ", "min 0"});
  EXPECT_GE(std::ranges::count(two.out, '\n'), 58) << "two drawings";
  for (const std::string kind : {"toy --samples 500", "ratings --samples 500",
                                 "images --samples 40 --height 8 --width 12 --classes 3 --channels 1"}) {
    fs::remove_all("of");

    made("synth " + kind + " --out of");
    made("verify of");
    made("head of");
    expect_told(made("stat of"), 0, {kind.starts_with("images") ? "[8, 12, 1]" : "samples"});
  }
}

TEST_F(ShardVerbs, VerifyNamesEveryDamage) {
  made("synth digits --out d --samples 3000 --shard-size 1M --chunk-size 128K");
  made("synth toy --out other --samples 100");
  const auto damaged = [](const std::function<void()>& damage, const std::vector<std::string>& says) {
    fs::remove_all("f"), fs::copy("d", "f", fs::copy_options::recursive);

    damage();
    const Ended told = ran("verify f");
    expect_told(told, 1, says);
  };
  damaged([] { flip("f/train-00000.h5", 300000); }, {"train-00000.h5: ", "chunk ", "sample", "is damaged: 1 defect"});
  const auto overwrite = fs::copy_options::overwrite_existing;
  damaged([] { fs::remove("f/val-00000.h5"); }, {"val-00000.h5: "});
  damaged([=] { fs::copy_file("d/train-00000.h5", "f/val-00000.h5", overwrite); }, {"val-00000.h5: "});
  damaged([] { fs::copy_file("d/val-00000.h5", "f/surplus.h5"); }, {"surplus.h5: "});
  damaged([] { fs::resize_file("f/train-00001.h5", fs::file_size("f/train-00001.h5") - 1); }, {"train-00001.h5: "});
  damaged([=] { fs::copy_file("other/train-00000.h5", "f/train-00000.h5", overwrite); }, {"of another set"});
  // What is no file, or may not be read, hides no other damage.
  damaged(
      [] {
        fs::resize_file("f/train-00001.h5", fs::file_size("f/train-00001.h5") - 1);
        fs::remove("f/train-00000.h5");
        EXPECT_EQ(mkfifo("f/train-00000.h5", 0600), 0);
      },
      {"train-00000.h5: a folder, a pipe or a device, not a file", "train-00001.h5: ", "is damaged: 2 defects"});
  damaged(
      [] {
        fs::remove("f/val-00000.h5");
        fs::create_symlink("round", "f/round");
        fs::remove("f/train-00000.h5");
        fs::create_symlink("round", "f/train-00000.h5");
      },
      {"error: cannot read '", "train-00000.h5'", "val-00000.h5: "});
}

// Damage in what is read stops the reader too.
TEST_F(ShardVerbs, NothingIsMadeOfADamagedSet) {
  made("synth digits --out d --samples 300");
  flip("d/train-00000.h5", 8192);
  expect_told(ran("pack d --out again"), 1, {"error: "});
  for (const auto& entry : fs::directory_iterator{"."}) EXPECT_EQ(entry.path(), "./d");
  flip("d/manifest.json", 40);
  EXPECT_NE(ran("stat d").exit_code, 0);
}

TEST_F(ShardVerbs, PackKeepsTheSamples) {
  made("synth digits --out d --samples 700");
  const std::vector<std::string> all = samples("d");
  for (const std::string filter : {"deflate", "zstd", "lz4", "none"}) {
    made("pack d --out " + filter + " --chunk-size 64K --shard-size 256K --compress " + filter);
    made("verify " + filter);
    EXPECT_EQ(samples(filter), all) << filter;
  }
  expect_told(made("stat zstd"), 0, {"compression", "zstd"});
  made("pack zstd --out back --compress none");  // with the defaults: the bytes of the first folder
  expect_same("d", "back");
  made("pack zstd --out kept --level 19");
  expect_told(made("stat kept"), 0, {"compression", "zstd"});
  made("pack d --out mixed --shuffle --seed 4");
  const std::vector<std::string> mixed = samples("mixed");
  EXPECT_NE(mixed, all);
  EXPECT_EQ(sorted(mixed), sorted(all));
}

TEST_F(ShardVerbs, TheBytesAreTheSameForAnyNumberOfRanks) {
  int n = 0;
  for (const std::string verb : {"synth digits --samples 600 --shard-size 64K --chunk-size 16K",
                                 "pack s0 --compress zstd --shard-size 32K --chunk-size 8K --shuffle",
                                 "synth ratings --samples 2000 --shard-size 16K --chunk-size 4K",
                                 "synth toy --samples 500 --val 0.2 --shuffle --seed 5", "split s2 --val 0.1 --seed 3",
                                 "merge s2 s4 --shard-size 64K --chunk-size 4K"}) {
    const std::string name = "s" + std::to_string(n++);
    made(verb + " --out " + name);
    support::expect_done(lockstep_on, "shard " + verb + " --out " + name + ".of3", 3);
    expect_same(name, name + ".of3");
    support::expect_done(lockstep_on, "shard verify " + name, 2);
  }
  EXPECT_FALSE(set("s0") == set("s1")) << "a difference would not be seen";
}

TEST_F(ShardVerbs, SplitAndMergeKeepTheSamples) {
  made("synth toy --out t --samples 700");
  const std::vector<std::string> all = samples("t");
  expect_told(made("split t --out s --val 0.3 --seed 2"), 0, {"train 490 in 1 shard, val 210 in 1 shard"});
  made("verify s");
  const std::vector<std::string> part = samples("s");
  EXPECT_EQ(sorted(part, samples("s", "val")), sorted(all));
  expect_refused(lockstep_on, {"shard split s --out s2 --val 0.5", {"--join"}});
  expect_told(made("split s --out s2 --val 0.5 --join"), 0, {"train 350 in 1 shard, val 350 in 1 shard"});
  expect_told(made("merge s t --out sum"), 0, {"train 1190 in 1 shard, val 210 in 1 shard"});
  made("verify sum");
  std::vector<std::string> sum = part;
  sum.insert(sum.end(), all.begin(), all.end());
  EXPECT_EQ(samples("sum"), sum);
  expect_told(made("head sum -n 100000"), 0, {"id 1189"});
  fs::copy("t", "copy", fs::copy_options::recursive);
  fs::create_directory_symlink("t", "link");
  for (const std::string again : {"t", "./t", "copy", "link"})
    expect_refused(lockstep_on, {"shard merge s t " + again + " --out bad",
                                 {"'" + again + "' is the same set as 't'", "name each set once"}});
  made("synth digits --out d --samples 10");
  made("synth images --out i --samples 10 --height 28 --width 28 --channels 1");
  expect_refused(lockstep_on, {"shard merge d i --out bad", {"x is uint8 [28, 28], but uint8 [28, 28, 1] in "}});
}

}  // namespace
}  // namespace lockstep::training
