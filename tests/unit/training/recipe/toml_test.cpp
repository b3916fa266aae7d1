#include <array>
#include <cstring>

#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

TEST(RecipeToml, EveryTypeOfValueIsRead) {
  const Recipe r = resolve(R"(# a recipe
model = "resnet18"          # text
cifar-stem = true           # boolean
classes = 1_000             # whole number
data = 'folder with \ and #'
batch = 0x40
optimizer = "sgd"
lr = 1e-1
momentum = 0                # a whole number where a fraction may stand
schedule = "multistep"
milestones = [30, 60.5, "80 epochs"]
warmup = "20000 samples"
)")
                       .recipe;
  EXPECT_EQ(r.model, "resnet18");
  EXPECT_TRUE(r.cifar_stem);
  EXPECT_EQ(r.classes, 1000U);
  EXPECT_EQ(r.data, "folder with \\ and #");
  EXPECT_EQ(r.batch, 64U);
  EXPECT_EQ(r.lr, 0.1);
  EXPECT_EQ(r.optimizer.momentum, 0);
  EXPECT_EQ(r.warmup, (Length{20000, Length::Unit::samples}));
  EXPECT_EQ(r.milestones, (std::vector<Length>{{30}, {60.5}, {80}}));
}

TEST(RecipeToml, AnUnknownKeyIsNamedWithItsPlaceAndWhatItIsNear) {
  const std::string message = refused_text("model = \"toy\"\n\n  bacth = 32\n");
  EXPECT_TRUE(has(message, "unknown key 'bacth'")) << message;
  EXPECT_TRUE(has(message, "folder/r.toml:3:3")) << message;
  EXPECT_TRUE(has(message, "did you mean 'batch'?")) << message;
  EXPECT_TRUE(has(refused_text("label_smoothing = 0.1"), "did you mean 'label-smoothing'?"));
  EXPECT_FALSE(has(refused_text("colour = 1"), "did you mean"));
}

TEST(RecipeToml, WhatTheTutorialsCallAKeyIsTranslated) {
  const std::string message = refused_text("batch_size = 64");
  EXPECT_TRUE(has(message, "unknown key 'batch_size'")) << message;
  EXPECT_TRUE(has(message, "it is called 'batch' here, and counts all ranks together")) << message;
  EXPECT_TRUE(has(refused_text("batchsize = 64"), "it is called 'batch' here"));
  EXPECT_TRUE(has(refused_text("run-dir = \"x\""), "not to a recipe: use --run-dir on the command line"));
  EXPECT_TRUE(has(refused_text("", {"--learning_rate", "0.1"}), "(--learning_rate)"));
  EXPECT_TRUE(has(refused_text("", {"--num-workers", "4"}), "'loader-threads'"));
}

TEST(RecipeToml, TheFirstWrongLineIsNamed) {
  EXPECT_TRUE(has(refused_text("zebra = 1\naardvark = 2\n"), "'zebra'"));
  EXPECT_TRUE(has(refused_text("aardvark = 2\nzebra = 1\n"), "'aardvark'"));
}

TEST(RecipeToml, AWrongTypeIsRefusedWithItsPlaceAndWhatWasExpected) {
  const std::string message = refused_text("model = \"toy\"\nbatch = \"64\"\n");
  EXPECT_TRUE(has(message, "batch is a text")) << message;
  EXPECT_TRUE(has(message, "folder/r.toml:2:9")) << message;
  EXPECT_TRUE(has(message, "a whole number from 1 to ")) << message;

  EXPECT_TRUE(has(refused_text("batch = 64.0"), "batch is a number with a fraction"));
  EXPECT_TRUE(has(refused_text("batch = true"), "batch is a boolean"));
  EXPECT_TRUE(has(refused_text("batch = [64]"), "batch is a list"));
  EXPECT_TRUE(has(refused_text("batch = 2026-11-21"), "batch is a date or time"));
  EXPECT_TRUE(has(refused_text("model = 3"), "one of toy, mnist_cnn, "));
  EXPECT_TRUE(has(refused_text("deterministic = 1"), "true or false"));
  EXPECT_TRUE(has(refused_text("deterministic = \"true\""), "true or false"));
  EXPECT_TRUE(has(refused_text("lr = \"0.1\""), "lr is a text"));
  EXPECT_TRUE(has(refused_text("milestones = [[1], [2]]"), "a list of lists"));
  EXPECT_TRUE(has(refused_text("milestones = [1, true]"), "'true' is not a length"));
}

TEST(RecipeToml, SectionsAreRefused) {
  EXPECT_TRUE(has(refused_text("lr = 1\n [optimizer]\n"), "a table (folder/r.toml:2:2)"));
  EXPECT_TRUE(has(refused_text("[optimizer]\nlr = 1"), "a recipe has no [sections]"));
  EXPECT_TRUE(has(refused_text("[~"), "a table (folder/r.toml:1:1)"));
  EXPECT_TRUE(has(refused_text("batch = { n = 1 }"), "a table (folder/r.toml:1:9)"));
  EXPECT_TRUE(has(refused_text("batch.lr = 1"), "batch is a section"));
  EXPECT_TRUE(has(refused_text("training.lr = 1"), "unknown section 'training'"));
  EXPECT_EQ(resolve("model = 'toy'\nschedule = 'multistep'\nmilestones = [\n  3,  # three\n  4\n  ]\n")
                .recipe.milestones.size(),
            2U);
}

TEST(RecipeToml, WhatIsNoTomlIsRefusedWithItsPlace) {
  const std::array texts{"batch = ",
                         "batch 64",
                         "batch = 64 65",
                         "= 64",
                         "batch = 'a\nb'",
                         "batch = \"",
                         "[",
                         "[[",
                         "batch = [1,",
                         "batch = 64\nbatch = 65",
                         "batch = {a=1",
                         "lr = 1e",
                         "lr = 01",
                         "lr = .5",
                         "model = \"\\q\"",
                         "\xff\xfe = 1",
                         "model = \"\x01\"",
                         "batch = 0x",
                         "a.b = 1\na = 2",
                         "seed = 99999999999999999999",
                         "batch = tru",
                         "\"\"\"",
                         "lr = 1.0\x80\x80"};
  for (const char* text : texts) {
    const std::string message = refused_text(text);
    EXPECT_TRUE(has(message, "folder/r.toml:1:") || has(message, "folder/r.toml:2:")) << text << "\n" << message;
  }
}

TEST(RecipeToml, AWordWithoutQuotesIsToldToTakeThem) {
  EXPECT_TRUE(has(refused_text("# a\nmodel = toy  # b\n"), "put texts in quotes: model = \"toy\""));
  EXPECT_TRUE(has(refused_text("data=../shards\n"), "put texts in quotes: data = \"../shards\""));
  EXPECT_TRUE(has(refused_text("order = nan1"), "put texts in quotes: order = \"nan1\""));
  EXPECT_TRUE(has(refused_text("deterministic = True"), "true or false in small letters"));
  for (const char* text : {"batch = ", "batch 64", "lr = .5.5", "batch = [1,", "model = \"a"})
    EXPECT_FALSE(has(refused_text(text), "quotes:")) << text;
}

TEST(RecipeToml, WhatTheParserDoesNotExpectIsRefused) {
  EXPECT_TRUE(has(refused_text("lanes = [[2 ,2],} [3\n"), "folder/r.toml"));
}

TEST(RecipeToml, WhatIsNestedDeeplyIsRefused) {
  static_cast<void>(refused_text("milestones = " + std::string(100000, '[')));
  static_cast<void>(refused_text("a = " + std::string(1000, '[') + std::string(1000, ']')));
  std::string dots = "a";
  for (int i = 0; i < 300'000; ++i) dots += ".a";
  EXPECT_TRUE(has(refused_text(dots + " = 1\n"), "a key with more than 100 dots (folder/r.toml:1:202)"));
}

TEST(RecipeToml, BeyondAsciiThereAreTextsAndCommentsOnly) {
  const Recipe r =
      resolve(
          "\xef\xbb\xbf# \xc3\xa9 \"\nmodel = \"toy\"\nname = \"\xc3\xa9 \\\" #\"\ndata = '\xc3\xa9\\'  # \xc3\xa9\n")
          .recipe;
  EXPECT_EQ(r.name, "\xc3\xa9 \" #");
  EXPECT_EQ(r.data, "\xc3\xa9\\");
  EXPECT_TRUE(has(refused_text("# \xc3\xa9\n\xc3\xa9 = 1\n"),
                  "U+00E9, a non-ASCII character outside texts and comments (folder/r.toml:2:1)"));
  EXPECT_TRUE(has(refused_text("name = 'x\xc3\xa9' \xe2\x80\x9cy\xe2\x80\x9d\n"),
                  "U+201C, a non-ASCII character outside texts and comments (folder/r.toml:1:13)"));
  EXPECT_TRUE(has(refused_text("name = 0\"\xc3\xa9\""), "a quote where no text begins (folder/r.toml:1:9)"));
  for (const char* before : {"a = 2026-a==", "a = [1][", "a = [[2", "a = 1 ", "a = 1,", "a = \"b\"", "a."})
    EXPECT_TRUE(has(refused_text(fmt::format("{}\"\xc3\xa9\"", before)),
                    fmt::format("a quote where no text begins (folder/r.toml:1:{})", 1 + std::strlen(before))))
        << before;
  EXPECT_TRUE(has(refused_text("a = [\n\"\xc3\xa9\", # ]\n '\xc3\xa9']\n'b'= [['\xc3\xa9']]\n c ='\xc3\xa9'"),
                  "unknown key 'a'"));
  EXPECT_TRUE(
      has(refused_text("milestones = [30,\n60\nname = \"\xc3\xa9\""), "an array without an end (folder/r.toml:1:14)"));
  EXPECT_TRUE(has(refused_text("name = \"toy\\\"\nlr = 1"), "a text without an end (folder/r.toml:1:8)"));
  EXPECT_TRUE(has(refused_text("name = \"\"\"x\\\n\xc2\xa7\"\"\""), "several lines (folder/r.toml:1:8)"));
  EXPECT_TRUE(has(refused_text("batch = 'x\n\xc2\xa7 = 1"), "r.toml:1:9"));
  EXPECT_TRUE(has(refused_text("name = \"\\\n\xc2\xa7 = 1"), "r.toml:1:8"));
}

TEST(RecipeToml, TextsAreOneLineOfUtf8) {
  EXPECT_TRUE(has(refused_text("data = \"a\\nb\""), "control character"));
  EXPECT_TRUE(has(refused_text("data = \"a\\u0000b\""), "control character"));
  EXPECT_TRUE(has(refused_text("", {"--data", "a\xff"}), "not UTF-8"));
  EXPECT_EQ(resolve("model = \"toy\"\ndata = \"\\u00e9t\\u00e9\"").recipe.data, "\xc3\xa9t\xc3\xa9");
}

}  // namespace
}  // namespace lockstep::training
