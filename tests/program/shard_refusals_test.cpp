// lockstep shard: wrong usage and bad places are one message with the way out, exit code 2, and nothing touched.
#include <unistd.h>

#include <filesystem>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"
#include "training/command.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::lockstep_on;

class Shard : public support::InFolder {};

support::Ended made(const std::string& line) { return support::expect_done(lockstep_on, "shard " + line); }

TEST_F(Shard, RefusesWhatItCannotDo) {
  made("synth toy --out d --samples 64");
  write("file", "x");
  write("empty/manifest.json", "");
  fs::create_directory("folder");

  const support::Refused table[] = {
      {"shrad", {"did you mean 'shard'"}},
      {"shard", {"a verb is missing"}},
      {"shard veriyf d", {"did you mean 'verify'"}},
      {"shard import mnits d --out e", {"did you mean 'mnist'"}},
      {"shard synth digit --out e", {"did you mean 'digits'"}},
      {"shard synth digits --out e --sample 3", {"did you mean '--samples'"}},
      {"shard synth digits --out e --compress zst", {"did you mean 'zstd'"}},
      {"shard import mnist --out e", {"PATH is missing"}},
      {"shard stat d e", {"unexpected argument 'e'"}},
      {"shard synth digits", {"--out is missing"}},
      {"shard synth digits --out", {"needs a value"}},
      {"shard stat nothing", {"manifest"}},
      {"shard verify nothing", {"manifest"}},
      {"shard bench nothing", {"manifest"}},
      {"shard stat empty", {"fix: "}},
      {"shard synth toy --out e --nproc 7", {"--nproc"}},
      {"shard synth toy --out d --samples 32", {"/d' exists", "--force"}},
      {"shard synth toy --out none/d", {"--out", "none"}},
      {"shard synth toy --out file", {"/file' exists and is not a folder", "fix: choose another name, or remove it"}},
      {"shard synth toy --out file --force", {"'file' is not replaced"}},
      {"shard synth toy --out file/d", {"file"}},
      {"shard synth toy --out d/new --samples 32", {"would be inside a set of shards"}},
      {"shard synth toy --out d/new/ --samples 32", {"would be inside a set of shards"}},
      {"shard bench d --json none/b.json", {"cannot write"}},
      {"shard bench d --seconds 0.1 --json d/manifest.json", {"inside a set of shards"}},
      {"shard bench d --seconds 0.1 --json d/b.json", {"inside a set of shards"}},
      {"shard bench d --augment crop:8", {"crop"}},
      {"shard bench d --seconds 1e308", {"--seconds"}},
      {"shard head d --split vall", {"val"}},
      {"shard synth toy --out e --chunk-size 1 --shard-size 1", {"--shard-size"}},
      {"shard synth toy --out e --samples 281474976710656 --val 0.5", {"shards ", "--shard-size"}},
      {"shard synth toy --out e --chunk-size 1T --shard-size 1T", {"--chunk-size"}},
      {"shard synth ratings --out e --users 2147483648", {"--users"}},
      {"shard import mnist file --out e", {"its folder"}},
      {"shard import mnist nowhere --out e", {"nowhere"}},
      {"shard import csv folder --out e --no-classes", {"folder"}},
      {"shard import mnist folder --out e --no-classes", {"csv, hdf5, npy"}},
  };
  for (const support::Refused& refused : table) expect_refused(lockstep_on, refused);
  if (geteuid() == 0) return;
  fs::permissions("folder", fs::perms{0500});

  expect_refused(lockstep_on, {"shard synth toy --out folder/d", {"folder"}});
  fs::permissions("folder", fs::perms{0700});
}

TEST_F(Shard, PrintsATextOnce) {
  for (const std::string line : {"--help", "--version", "shard --help", "shard import --help", "shard bench --help"}) {
    const support::Ended ran = support::expect_done(lockstep_on, line);
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out, parse_command_line(support::words_of(line)).text);
  }
}

TEST_F(Shard, ForceReplacesASetOfOursAndNothingElse) {
  made("synth toy --out d --samples 64");
  for (const std::string place : {"d", "d/"}) made("synth toy --out " + place + " --samples 32 --force");
  support::expect_told(made("stat d"), 0, {"train               32 "});
  EXPECT_EQ(std::distance(fs::directory_iterator{"."}, {}), 1) << "something is left beside the folder";
  fs::create_directory("empty");

  made("synth toy --out empty --samples 32 --force");
  const std::string force = "shard synth toy --out d --samples 32 --force";
  write("d/thesis.txt", "years of work");
  expect_refused(lockstep_on, {force, {"it contains 'thesis.txt', which belongs to something else", "fix: "}});
  fs::create_directory("d/notes");

  expect_refused(lockstep_on, {force, {"it contains 'notes' and 1 more", "fix: "}});
  fs::remove("d/thesis.txt");
  fs::remove("d/notes");

  write("d/manifest.json", support::files_here()["./d/manifest.json"] + " ");
  expect_refused(lockstep_on, {force, {"manifest does not end with its digest", "fix: "}});
  write("d/manifest.json", R"({"name": "web app"})");
  expect_refused(lockstep_on, {force, {"this is not a manifest of shards", "fix: "}});
  fs::remove("d/manifest.json");

  expect_refused(lockstep_on, {force, {"it has no manifest.json", "fix: "}});
}

// Neither names of the command line nor those in a set.
TEST_F(Shard, NamesOfOthersDoNotSteerTheTerminal) {
  const std::string esc = "\x1b[2J";
  const std::string csi =
      "\xc2\x9b"
      "31m";
  const std::string bidi = "\xe2\x80\xae";
  expect_refused(lockstep_on, {"shard stat " + esc + csi + bidi, {"manifest", "\\x1b[2J\\u009b31m\\u202e"}});
  for (const std::string& folder : {csi, std::string{"b"}}) write("i/" + folder + "/a.ppm", "P6 1 1 255\nabc");
  std::vector<support::Ended> shown;
  const auto show = [&shown](support::Ended ran, int code, const std::string& says) {
    support::expect_told(ran, code, {says});
    shown.push_back(std::move(ran));
  };
  show(made("import images i --out " + esc), 0, "\\x1b");
  show(made("stat " + esc), 0, "\\u009b31m");
  show(made("stat " + esc + " --json"), 0, "\\u009b");
  fs::rename(esc + "/train-00000.h5", esc + "/" + csi + ".h5");

  show(lockstep_on({"shard", "verify", esc}), 1, "\\u009b31m.h5: surplus");
  for (const support::Ended& ran : shown) EXPECT_EQ((ran.out + ran.err).find_first_of("\x1b\x9b"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::training
