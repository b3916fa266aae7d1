#include "training/command.hpp"

#include <gtest/gtest.h>

#include "data/importers/importers.hpp"
#include "data/synth/synth.hpp"
#include "support/text.hpp"
#include "training/ckpt/verbs.hpp"
#include "training/run/options.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training {
namespace {

using Words = std::vector<std::string>;
using support::has;

std::string text_of(const Words& words) {
  const Invocation invocation = parse_command_line(words);
  EXPECT_FALSE(invocation.error.has_value()) << (invocation.error ? invocation.error->what() : "");
  return invocation.text;
}

std::string error_of(const Words& words) {
  const Invocation invocation = parse_command_line(words);
  EXPECT_FALSE(invocation.run) << "it would run";
  if (!invocation.error) return "";
  EXPECT_EQ(invocation.error->code(), core::ExitCode::usage);
  return invocation.error->what();
}

bool runs(const Words& words) {
  const Invocation invocation = parse_command_line(words);
  EXPECT_FALSE(invocation.error.has_value()) << (invocation.error ? invocation.error->what() : "");
  return static_cast<bool>(invocation.run);
}

TEST(Command, HelpIsThereAtEveryLevel) {
  EXPECT_TRUE(has(text_of({"--help"}), "shard"));
  EXPECT_TRUE(has(text_of({"--version"}), "lockstep "));
  EXPECT_EQ(text_of({"shard", "--help"}), text_of({"shard", "-h"}));
  for (const Verb& verb : shard::verbs) {
    EXPECT_TRUE(has(text_of({"shard", "--help"}), std::string{verb.summary}));
    EXPECT_TRUE(has(text_of({"shard", std::string{verb.name}, "--help"}), std::string{verb.usage}));
    EXPECT_TRUE(has(text_of({"shard", std::string{verb.name}, "--nonsense", "-h"}), "Memory: ")) << verb.name;
  }
}

void expect_flags_in_help(const std::string& command, std::span<const Verb> verbs) {
  for (const Verb& verb : verbs) {
    const std::string help = text_of({command, std::string{verb.name}, "--help"});
    core::Flags flags{""};
    static_cast<void>(verb.declare(flags));
    for (const std::string& flag : flags.names()) EXPECT_TRUE(has(help, flag)) << verb.name << " " << flag;
    EXPECT_TRUE(has(help, "--nproc N"));
    EXPECT_TRUE(has(text_of({command, "--help"}), std::string{verb.summary}));
  }
}

TEST(Command, TheHelpNamesEveryFlagOfTheVerb) {
  expect_flags_in_help("shard", shard::verbs);
  expect_flags_in_help("ckpt", ckpt::verbs);
}

TEST(Command, TheHelpOfTrainNamesEveryFlagOfARun) {
  RunOptions options;
  core::Flags flags{""};
  declare_run(flags, options);
  const std::string help = text_of({"train", "--help"});
  for (const std::string& flag : flags.names()) EXPECT_TRUE(has(help, "\n      " + flag + " ")) << flag;
  EXPECT_TRUE(has(help, "(runs/RECIPE-DATE-N)"));
}

TEST(Command, TheHelpNamesEveryKind) {
  for (const data::Importer& importer : data::importers)
    EXPECT_TRUE(has(text_of({"shard", "import", "--help"}), std::string{importer.summary}));
  for (const data::Synthesizer& kind : data::synthesizers)
    EXPECT_TRUE(has(text_of({"shard", "synth", "--help"}), std::string{kind.summary}));
}

TEST(Command, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(has(error_of({}), "a command is missing"));
  EXPECT_TRUE(has(error_of({"shrad"}), "did you mean 'shard'?"));
  EXPECT_TRUE(has(error_of({"--hlep"}), "did you mean '--help'?"));
  EXPECT_TRUE(has(error_of({"shard"}), "a verb is missing"));
  EXPECT_TRUE(has(error_of({"shard", "veriyf", "d"}), "did you mean 'verify'?"));
  EXPECT_TRUE(has(error_of({"shard", "import", "mnits", "p", "--out", "d"}), "did you mean 'mnist'?"));
  EXPECT_TRUE(has(error_of({"shard", "synth", "digit", "--out", "d"}), "did you mean 'digits'?"));
  EXPECT_TRUE(has(error_of({"shard", "stat", "d", "--jsno"}), "did you mean '--json'?"));
  EXPECT_TRUE(has(error_of({"shard", "stat", "d", "--nproc", "0"}), "--nproc"));
}

TEST(Command, ANewFolderNeedsAName) {
  for (const Words& words : {Words{"import", "mnist", "p"}, Words{"synth", "toy"}, Words{"pack", "d"},
                             Words{"split", "d", "--val", "0.1"}, Words{"merge", "a", "b"}}) {
    Words all{"shard"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_TRUE(has(error_of(all), "--out is missing")) << words.front();
    all.insert(all.end(), {"--out", "x"});
    EXPECT_TRUE(runs(all)) << words.front();
  }
}

TEST(Command, PackingFlagsAreCheckedTogether) {
  const auto with = [](const Words& more) {
    Words all{"shard", "synth", "toy", "--out", "d"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_TRUE(has(error_of(with({"--level", "3"})), "--compress"));
  EXPECT_TRUE(has(error_of(with({"--compress", "deflate", "--level", "12"})), "1 to 9"));
  EXPECT_TRUE(has(error_of(with({"--compress", "zst"})), "did you mean 'zstd'?"));
  EXPECT_TRUE(has(error_of(with({"--chunk-size", "8M", "--shard-size", "4M"})), "do not fit"));
  EXPECT_TRUE(has(error_of(with({"--chunk-size", "0"})), "--chunk-size"));
  EXPECT_TRUE(has(error_of(with({"--val", "1"})), "empty"));
  EXPECT_TRUE(has(error_of(with({"--val", "1.5"})), "--val"));
  EXPECT_TRUE(runs(with({"--compress", "zstd", "--level", "22", "--val", "0.2", "--shuffle", "--nproc", "3"})));
  EXPECT_EQ(parse_command_line(with({"--nproc", "3"})).nproc, 3);
}

TEST(Command, ALevelIsEnoughWhereTheCompressionStays) {
  EXPECT_TRUE(runs({"shard", "pack", "d", "--out", "e", "--level", "3"}));
  EXPECT_TRUE(has(error_of({"shard", "pack", "d", "--out", "e", "--compress", "none", "--level", "3"}), "--level"));
}

TEST(Command, FlagsOfOtherKindsAreRefused) {
  EXPECT_TRUE(has(error_of({"shard", "import", "csv", "p", "--out", "d", "--resize", "8"}), "it is for: images"));
  EXPECT_TRUE(has(error_of({"shard", "synth", "digits", "--out", "d", "--height", "8"}), "it is for: images"));
  EXPECT_TRUE(runs({"shard", "synth", "images", "--out", "d", "--height", "8"}));
  EXPECT_TRUE(runs({"shard", "import", "npy", "p", "--out", "d", "--x-name", "a"}));
}

TEST(Command, KeptImagesAreNotChanged) {
  const std::vector<std::vector<std::string>> changes{{"--crop", "8"}, {"--resize", "8"}, {"--gray"}};
  for (const std::vector<std::string>& change : changes) {
    std::vector<std::string> words{"shard", "import", "images", "p", "--out", "d", "--keep-encoded"};
    words.insert(words.end(), change.begin(), change.end());
    EXPECT_TRUE(has(error_of(words), "leave out --keep-encoded")) << change.front();
  }
}

TEST(Command, OnlyNpyTakesTwoFiles) {
  EXPECT_TRUE(runs({"shard", "import", "npy", "x.npz", "y.npz", "--out", "d"}));
  EXPECT_TRUE(has(error_of({"shard", "import", "npy", "x", "y", "z", "--out", "d"}), "unexpected argument 'z'"));
  EXPECT_TRUE(has(error_of({"shard", "import", "mnist", "x", "y", "--out", "d"}), "unexpected argument 'y'"));
  EXPECT_TRUE(has(error_of({"shard", "import", "mnist", "--out", "d"}), "PATH is missing"));
}

TEST(Command, EachImporterExplainsItself) {
  for (const data::Importer& importer : data::importers) {
    const std::string kind{importer.name};
    const std::string help = text_of({"shard", "import", kind, "--help"});
    EXPECT_TRUE(has(help, kind + ": " + std::string{importer.summary}));
    EXPECT_TRUE(has(help, std::string{importer.layouts}));
    EXPECT_EQ(has(help, "--skip-bad"), kind == "images") << kind;
    EXPECT_EQ(has(help, "--x-columns"), kind == "csv") << kind;
    EXPECT_EQ(has(help, "--no-classes"), kind == "csv" || kind == "hdf5" || kind == "npy") << kind;
    EXPECT_TRUE(has(help, "--out FOLDER") && has(help, "--val SHARE") && has(help, "--nproc N")) << kind;
    EXPECT_EQ(help, text_of({"shard", "import", kind, "some/path", "-h"}));
  }
  EXPECT_TRUE(has(error_of({"shard", "import", "mnits", "--help"}), "did you mean 'mnist'?"));
}

TEST(Command, TheOtherVerbsCheckTheirs) {
  EXPECT_TRUE(has(error_of({"shard", "split", "d", "--out", "e"}), "--val is missing"));
  EXPECT_TRUE(has(error_of({"shard", "merge", "a", "--out", "e"}), "FOLDER is missing"));
  EXPECT_TRUE(has(error_of({"shard", "bench", "d", "--seconds", "1", "--epochs", "1"}), "one of the two"));
  EXPECT_TRUE(has(error_of({"shard", "bench", "d", "--cold", "--cache", "node"}), "--cold"));
  EXPECT_TRUE(has(error_of({"shard", "bench", "d", "--dtype", "float23"}), "did you mean 'float32'?"));
  EXPECT_TRUE(has(error_of({"shard", "bench", "d", "--augment", "flipp"}), "--augment"));
  EXPECT_TRUE(runs({"shard", "bench", "d", "--cold", "--layout", "nhwc", "--dtype", "stored", "--augment", "flip"}));
}

}  // namespace
}  // namespace lockstep::training
