#include "data/format/manifest_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/digest.hpp"

namespace lockstep::data {
namespace {

constexpr std::string_view before_digest = "  \"digest\": \"";
constexpr std::string_view after_digest = "\"\n}\n";
constexpr std::size_t digest_size = 32;

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    core::fail_usage({.what = fmt::format("the name '{}' is not UTF-8", text), .fix = "rename it"});
  }
}

// "[1, 2]"
std::string list_of(const std::vector<std::string>& items) { return fmt::format("[{}]", fmt::join(items, ", ")); }

std::string array_line(const ArraySpec& array) {
  return fmt::format(R"({{"dtype": "{}", "shape": [{}]}})", core::name(array.dtype), fmt::join(array.shape, ", "));
}

std::string shard_line(const ShardEntry& shard) {
  return fmt::format(R"({}{{"file": {}, "n_samples": {}, "bytes": {}, "digest": "{}", "index_address": {}, )"
                     R"("index_bytes": {}, "index_crc32c": "{:#010x}"}})",
                     shard_indent, quoted(shard.file), shard.n_samples, shard.bytes, shard.digest, shard.index.address,
                     shard.index.bytes, shard.index_crc);
}

std::string extra_line(const ExtraEntry& extra) {
  return fmt::format(R"(    {{"file": {}, "bytes": {}, "digest": "{}"}})", quoted(extra.file), extra.bytes,
                     extra.digest);
}

std::string note_line(const std::string& note) { return fmt::format("    {}", quoted(note)); }

// Writes the lines of a list, separated by commas, each ended by a new line.
template <class Items, class Line>
std::string lines_of(const Items& items, Line line) {
  std::string text;
  for (const auto& item : items) text += fmt::format("{}{}", text.empty() ? "" : ",\n", line(item));
  return text.empty() ? text : text + "\n";
}

std::string split_lines(const Split& split) {
  return fmt::format("    {{\"name\": {}, \"n_samples\": {}, \"shards\": [\n{}    ]}}", quoted(split.name),
                     split.n_samples, lines_of(split.shards, shard_line));
}

}  // namespace

std::string seal(std::string body) {
  const std::string digest = io::digest_of(std::as_bytes(std::span{body}));
  return std::move(body) + fmt::format("{}{}{}", before_digest, digest, after_digest);
}

std::optional<Sealed> split_seal(std::string_view text) {
  constexpr std::size_t seal_size = before_digest.size() + digest_size + after_digest.size();
  if (text.size() < seal_size) return std::nullopt;
  const std::string_view end = text.substr(text.size() - seal_size);
  if (!end.starts_with(before_digest) || !end.ends_with(after_digest)) return std::nullopt;
  return Sealed{text.substr(0, text.size() - seal_size), end.substr(before_digest.size(), digest_size)};
}

std::string serialize(const Manifest& manifest) {
  std::vector<std::string> classes;
  for (const std::string& name : manifest.spec.classes) classes.push_back(quoted(name));
  std::string body = "{\n";
  body += fmt::format("  \"format\": \"{}\",\n  \"version\": {},\n", manifest_format, manifest_version);
  body += fmt::format("  \"encoding\": {},\n", quoted(manifest.spec.encoding));
  body += fmt::format("  \"x\": {},\n  \"y\": {},\n", array_line(manifest.spec.x), array_line(manifest.spec.y));
  body += fmt::format("  \"classes\": {},\n", list_of(classes));
  body += fmt::format("  \"filter\": \"{}\",\n  \"chunk_samples\": {},\n", io::name(manifest.filter),
                      manifest.chunk_samples);
  body += fmt::format("  \"splits\": [\n{}  ],\n", lines_of(manifest.splits, split_lines));
  body += fmt::format("  \"extras\": [\n{}  ],\n", lines_of(manifest.extras, extra_line));
  if (!manifest.notes.empty()) body += fmt::format("  \"notes\": [\n{}  ],\n", lines_of(manifest.notes, note_line));
  return seal(std::move(body));
}

}  // namespace lockstep::data
