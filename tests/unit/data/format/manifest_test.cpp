#include "data/format/manifest.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/format/manifest_text.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using io::expect_error;
using io::TemporaryFolder;

const std::string digest = "00112233445566778899aabbccddeeff";

ShardEntry shard(const std::string& file, std::uint64_t n_samples) {
  return {
      .file = file, .n_samples = n_samples, .bytes = 9000, .digest = digest, .index = {8000, 1000}, .index_crc = 0xabc};
}

Manifest small() {
  Manifest manifest{.spec = {.x = {.dtype = core::DType::bfloat16, .shape = {3, 4}},
                             .y = {.dtype = core::DType::int32, .shape = {}},
                             .classes = {"caf\xc3\xa9", "quote \" and \\", ""}},
                    .filter = io::Filter::zstd,
                    .chunk_samples = 16};
  manifest.splits = {{"train", 30, {shard("train-00000.h5", 20), shard("train-00001.h5", 10)}}, {"val", 0, {}}};
  manifest.extras = {{"ids.h5", 4321, digest}};
  manifest.notes = {"left out: column 0 (\"\")", "assumed: caf\xc3\xa9"};
  return manifest;
}

// The text of small() with one thing replaced, under a right digest.
std::string resealed(const std::string& from, const std::string& to) {
  const std::string text = serialize(small());
  std::string body{split_seal(text)->body};
  const std::size_t at = body.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return seal(body.replace(at, from.size(), to));
}

TEST(Manifest, RoundTrips) {
  const std::string text = serialize(small());
  const Manifest read = parse_manifest(text, "m");
  EXPECT_EQ(read.spec, small().spec);
  EXPECT_EQ(read.filter, io::Filter::zstd);
  EXPECT_EQ(read.chunk_samples, 16);
  ASSERT_EQ(read.splits.size(), 2);
  EXPECT_EQ(read.splits[0].shards[1].file, "train-00001.h5");
  EXPECT_EQ(read.splits[0].shards[1].index, (io::Extent{8000, 1000}));
  EXPECT_EQ(read.splits[0].shards[1].index_crc, 0xabc);
  EXPECT_EQ(read.extras.at(0).bytes, 4321);
  EXPECT_EQ(read.notes, small().notes);
  EXPECT_EQ(serialize(read), text);
}

TEST(Manifest, OfAnEmptySetRoundTrips) {
  const std::string text = serialize(Manifest{.chunk_samples = 1});
  EXPECT_EQ(serialize(parse_manifest(text, "m")), text);
}

TEST(Manifest, IsJsonWithOneShardALine) {
  const std::string text = serialize(small());
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("splits").at(0).at("shards").size(), 2);
  EXPECT_EQ(json.at("splits").at(0).at("shards").at(0).at("index_crc32c"), "0x00000abc");
  EXPECT_NE(text.find("\n      {\"file\": \"train-00001.h5\", "), std::string::npos);
}

TEST(Manifest, NoticesEveryChangedByte) {
  const std::string text = serialize(small());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char mask : {'\x01', '\x20', '\x80'}) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ mask);
      expect_error([&] { (void)parse_manifest(changed, "m"); }, core::ExitCode::failed, {"manifest", "(m)"});
    }
  }
}

TEST(Manifest, NoticesEveryOtherLength) {
  const std::string text = serialize(small());
  for (std::size_t n = 0; n < text.size(); ++n)
    EXPECT_THROW((void)parse_manifest(text.substr(0, n), "m"), core::Error) << n;
  EXPECT_THROW((void)parse_manifest(text + "\n", "m"), core::Error);
  EXPECT_THROW((void)parse_manifest(text + text, "m"), core::Error);
}

TEST(Manifest, OfANewerVersionSaysWhichOneIsRead) {
  expect_error([] { (void)parse_manifest(resealed("\"version\": 1,", "\"version\": 7,"), "m"); }, core::ExitCode::usage,
               {"version 7", "version 1", "newer Lockstep"});
  expect_error(
      [] { (void)parse_manifest("{\n  \"format\": \"lockstep-shards\",\n  \"version\": 2,\n \"sealed\": 1}", "m"); },
      core::ExitCode::usage, {"version 2"});
}

TEST(Manifest, OfSomethingElseIsRefused) {
  for (const std::string text : {"", "{}", "hello", "[1, 2]", "\x89HDF\r\n"})
    expect_error([&] { (void)parse_manifest(text, "m"); }, core::ExitCode::usage, {"not a manifest", "(m)"});
}

struct Replacement {
  const char* from;
  const char* to;
  const char* words;
};

// What another program could write, with a right digest.
class Contradictory : public testing::TestWithParam<Replacement> {};

TEST_P(Contradictory, IsRefused) {
  expect_error([] { (void)parse_manifest(resealed(GetParam().from, GetParam().to), "m"); }, core::ExitCode::usage,
               {"malformed manifest", GetParam().words});
}

const std::string deep = "\"color\": " + std::string(100'000, '[') + std::string(100'000, ']') + ",\n  \"extras\": [";

INSTANTIATE_TEST_SUITE_P(
    Kinds, Contradictory,
    testing::Values(
        Replacement{"\"n_samples\": 30", "\"n_samples\": 31", "has 31 samples, but its shards have 30"},
        Replacement{"train-00001.h5", "../train-1.h5", "not the name of a file"},
        Replacement{"train-00001.h5", "a/b.h5", "not the name of a file"},
        Replacement{"train-00001.h5", "..", "not the name of a file"},
        Replacement{"train-00001.h5", "", "not the name of a file"},
        Replacement{"train-00001.h5", "train-00000.h5", "named twice"},
        Replacement{"\"ids.h5\"", "\"train-00000.h5\"", "named twice"},
        Replacement{"\"val\"", "\"train\"", "has no name, or one"},
        Replacement{"\"val\"", "\"v/al\"", "'v/al' cannot be the name of a split"},
        Replacement{", \"\"]", ", \"caf\xc3\xa9\"]", "two classes are called 'caf"},
        Replacement{"\"index_address\": 8000", "\"index_address\": 8001", "ends before its index"},
        Replacement{"\"index_address\": 8000", "\"index_address\": 18446744073709551615", "too large"},
        Replacement{"\"bytes\": 9000", "\"bytes\": -9000", "a shard: bytes is -9000; expected a whole number"},
        Replacement{"\"bytes\": 9000", "\"bytes\": 9e3", "a shard: bytes is 9000.0; expected a whole number"},
        Replacement{"\"bytes\": 9000", "\"bytes\": 9000, \"bytes\": 9001", "a shard: bytes occurs twice"},
        Replacement{"\"encoding\": ", "\"encoding\": \"raw\",\n  \"encoding\": ",
                    "malformed manifest: manifest.json: encoding occurs twice"},
        Replacement{"\"digest\": \"00112233", "\"digest\": \"0011223X", "expected a digest"},
        Replacement{"0x00000abc", "0x00000abg", "not a CRC32C"}, Replacement{"0x00000abc", "abc", "not a CRC32C"},
        Replacement{"[3, 4]", "[3, 0]", "extent of 0"},
        Replacement{"[3, 4]", "[4294967296, 4294967296]", "larger than a TiB"},
        Replacement{"bfloat16", "bfloat17", "not an element type"},
        Replacement{"\"zstd\"", "\"zip\"", "unknown filter"}, Replacement{"\"raw\"", "\"image\"", "encoded x"},
        Replacement{"\"raw\"", "\"audio\"", "unknown encoding"}, Replacement{"int32", "float32", "not whole numbers"},
        Replacement{"\"chunk_samples\": 16", "\"chunk_samples\": 0", "does not match"},
        Replacement{"\"chunk_samples\": 16", "\"chunk_samples\": 178956971", "a chunk is larger than 4 GiB"},
        Replacement{"\"chunk_samples\": 16", "\"chunk_samples\": 18446744073709551615", "chunk_samples is 18446744"},
        Replacement{"\"n_samples\": 30", "\"n_samples\": 1152921504606846977", "splits[0].n_samples is 11529215"},
        Replacement{"  \"filter\"", "  \"color\": 1,\n  \"filter\"", "unknown members"},
        Replacement{"  \"filter\"", "   \"filter\"", "its layout differs"},
        Replacement{"  \"filter\": \"zstd\",\n", "", "filter"}, Replacement{"\"n_samples\": 20,", "", "n_samples"},
        Replacement{"\"extras\": [", "\"extras\": [[", "malformed manifest: manifest.json: is not JSON: line "},
        Replacement{"\"extras\": [", deep.c_str(), "nested more than 64 deep"},
        Replacement{"\"assumed", "1, \"assumed", "notes[1] is 1"},
        Replacement{"    \"assumed", "   \"assumed", "its layout differs"},
        Replacement{"lockstep-shards", "lockstep-shreds", "format"}));

// What reads a set has memory by the number of its samples.
TEST(Manifest, AShardHasRoomForItsSamples) {
  const auto with = [](io::Filter filter, bool is_encoded, std::uint64_t n_samples) {
    Manifest manifest = small();
    manifest.filter = filter;
    if (is_encoded) {
      manifest.spec.x = {};
      manifest.spec.encoding = "image";
      manifest.chunk_samples = 0;
    }
    manifest.splits[0].shards[0].n_samples = n_samples;
    manifest.splits[0].n_samples = n_samples + 10;
    return serialize(manifest);
  };
  const struct {
    io::Filter filter;
    bool is_encoded;
    std::uint64_t most;
  } table[] = {
      {io::Filter::none, false, 9000 / (24 + 4 + 8)},
      {io::Filter::none, true, 9000 / (8 + 4 + 8)},
      {io::Filter::zstd, false, 1000 / 20 * 16},
      {io::Filter::zstd, true, 1 << 20},
  };
  for (const auto& [filter, is_encoded, most] : table) {
    const std::string fits = with(filter, is_encoded, most), too_many = with(filter, is_encoded, most + 1);
    EXPECT_EQ(serialize(parse_manifest(fits, "m")), fits);
    const std::string says = fmt::format("malformed manifest: train-00000.h5 has no room for {} samples", most + 1);
    expect_error([&] { (void)parse_manifest(too_many, "m"); }, core::ExitCode::usage, {says.c_str()});
  }
}

TEST(Manifest, NamesTheSplitsThereAre) {
  const Manifest manifest = small();
  EXPECT_EQ(manifest.split("train", "d").n_samples, 30);
  expect_error([&] { (void)manifest.split("test", "d"); }, core::ExitCode::usage, {"'test'", "train, val", "(d)"});
}

TEST(Manifest, RefusesClassesThatAreNoText) {
  Manifest manifest = small();
  manifest.spec.classes[0] = "caf\xe9";
  expect_error([&] { (void)serialize(manifest); }, core::ExitCode::usage, {"not UTF-8"});
}

TEST(Manifest, IsReadFromItsFolder) {
  const TemporaryFolder folder;
  expect_error([&] { (void)read_manifest(folder.path()); }, core::ExitCode::usage, {"manifest.json"});
  io::put(folder / "manifest.json", serialize(small()));
  EXPECT_EQ(read_manifest(folder.path()).spec, small().spec);
}

}  // namespace
}  // namespace lockstep::data
