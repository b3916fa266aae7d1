#include "data/format/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json.hpp"
#include "core/suggest.hpp"
#include "data/format/damaged.hpp"
#include "data/format/manifest_text.hpp"
#include "io/digest.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"
#include "runtime/together.hpp"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

/// The error for a manifest whose digest is right: no accident, but a program that writes another format.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

constexpr std::uint64_t most_chunk_bytes = std::uint64_t{1} << 32;  // HDF5 allows less
constexpr core::JsonRule count_rule{.kind = core::JsonKind::whole, .most = std::uint64_t{1} << 60};
constexpr core::JsonRule whole_list{.kind = core::JsonKind::list, .most = 32, .each = &core::json_whole};
constexpr core::JsonRule text_list{.kind = core::JsonKind::list, .each = &core::json_text};
constexpr std::array array_table{core::JsonField{"dtype", core::json_text}, core::JsonField{"shape", whole_list}};
constexpr std::array extra_table{core::JsonField{"file", core::json_text}, core::JsonField{"bytes", count_rule},
                                 core::JsonField{"digest", core::json_digest}};
constexpr std::array shard_table{core::JsonField{"file", core::json_text},
                                 core::JsonField{"n_samples", count_rule},
                                 core::JsonField{"bytes", count_rule},
                                 core::JsonField{"digest", core::json_digest},
                                 core::JsonField{"index_address", core::json_whole},
                                 core::JsonField{"index_bytes", count_rule},
                                 core::JsonField{"index_crc32c", core::json_text}};
constexpr std::array split_table{core::JsonField{"name", core::json_text}, core::JsonField{"n_samples", count_rule}};
constexpr core::JsonRule split_rule{.kind = core::JsonKind::object, .fields = split_table};
constexpr core::JsonRule extra_rule{.kind = core::JsonKind::object, .fields = extra_table};
constexpr std::array manifest_table{core::JsonField{"encoding", core::json_text},
                                    core::JsonField{"x", {.kind = core::JsonKind::object, .fields = array_table}},
                                    core::JsonField{"y", {.kind = core::JsonKind::object, .fields = array_table}},
                                    core::JsonField{"classes", text_list},
                                    core::JsonField{"filter", core::json_text},
                                    core::JsonField{"chunk_samples", count_rule},
                                    core::JsonField{"splits", {.kind = core::JsonKind::list, .each = &split_rule}},
                                    core::JsonField{"extras", {.kind = core::JsonKind::list, .each = &extra_rule}},
                                    core::JsonField{"notes", text_list, false}};
constexpr core::JsonDocument shard_document{.what = "the line of a shard",
                                            .rule = {.kind = core::JsonKind::object, .fields = shard_table}};
constexpr core::JsonDocument skeleton_document{.what = "a manifest",
                                               .rule = {.kind = core::JsonKind::object, .fields = manifest_table}};

void check(bool holds, const std::string& complaint) {
  if (!holds) throw Malformed{complaint};
}

std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  check(a <= UINT64_MAX - b, "numbers too large");
  return a + b;
}

std::uint64_t number(const Json& object, const char* key) { return object.at(key).get<std::uint64_t>(); }

std::string file_name(const Json& object) {
  const auto name = object.at("file").get<std::string>();
  check(io::is_plain_name(name), fmt::format("'{}' is not the name of a file in this folder", name));
  return name;
}

std::uint32_t crc(const Json& object) {
  const auto text = object.at("index_crc32c").get<std::string>();
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  check(text.size() == 10 && text.starts_with("0x"), fmt::format("'{}' is not a CRC32C", text));
  check(std::from_chars(text.data() + 2, end, value, 16).ptr == end, fmt::format("'{}' is not a CRC32C", text));
  return value;
}

ArraySpec array_spec(const Json& object) {
  ArraySpec array;
  const auto word = object.at("dtype").get<std::string>();
  const auto dtype = core::find_dtype(word);
  check(dtype.has_value(), fmt::format("'{}' is not an element type", word));
  array.dtype = *dtype;
  std::uint64_t bytes = core::size_of(array.dtype);
  for (const Json& extent : object.at("shape")) {
    check(extent.get<std::uint64_t>() > 0, "a shape has an extent of 0");
    array.shape.push_back(extent.get<std::uint64_t>());
    check(array.shape.back() <= (std::uint64_t{1} << 40) / bytes, "a sample is larger than a TiB");
    bytes *= array.shape.back();
  }
  return array;
}

ShardEntry shard_entry(const Json& object) {
  ShardEntry shard{.file = file_name(object),
                   .n_samples = number(object, "n_samples"),
                   .bytes = number(object, "bytes"),
                   .digest = object.at("digest").get<std::string>(),
                   .index = {number(object, "index_address"), number(object, "index_bytes")},
                   .index_crc = crc(object)};
  check(shard.n_samples > 0, fmt::format("{} has no samples", shard.file));
  check(add(shard.index.address, shard.index.bytes) <= shard.bytes,
        fmt::format("{} ends before its index", shard.file));
  return shard;
}

/// A shard has room for its samples: else what a reader keeps for each would be without end.
void check_room(const Manifest& manifest, const ShardEntry& shard) {
  constexpr std::uint64_t id_bytes = sizeof(std::uint64_t), offset_bytes = sizeof(std::uint64_t);
  constexpr std::uint64_t chunk_entry = sizeof(io::Extent) + sizeof(std::uint32_t);  // of an index
  constexpr std::uint64_t most_encoded = std::uint64_t{1} << 20;                     // as shards are written
  const SetSpec& spec = manifest.spec;
  const std::uint64_t row_bytes = (spec.is_encoded() ? offset_bytes : spec.x.bytes()) + spec.y.bytes() + id_bytes;
  const bool is_plain = manifest.filter == io::Filter::none;
  const bool has_room = is_plain ? shard.n_samples <= shard.bytes / row_bytes
                        : spec.is_encoded()
                            ? shard.n_samples <= most_encoded
                            : (shard.n_samples - 1) / manifest.chunk_samples < shard.index.bytes / chunk_entry;
  check(has_room, fmt::format("{} has no room for {} samples", shard.file, shard.n_samples));
}

/// The text without the lines of shards, and these lines: 10^5 of them would be a large tree of JSON.
struct Lines {
  std::string skeleton;
  std::vector<std::vector<std::string_view>> shards;  ///< by split
};

Lines sort_lines(std::string_view body) {
  constexpr std::string_view split_start = "    {\"name\": ";
  Lines lines;
  while (!body.empty()) {
    const std::size_t size = std::min(body.find('\n'), body.size() - 1) + 1;
    const std::string_view line = body.substr(0, size);
    body.remove_prefix(size);
    if (line.starts_with(split_start)) lines.shards.emplace_back();
    if (line.starts_with(shard_indent) && !lines.shards.empty())
      lines.shards.back().push_back(line.substr(0, line.find_last_of('}') + 1));
    else
      lines.skeleton += line;
  }
  return lines;
}

/// `manifest` has its spec and layout.
Split make_split(const Manifest& manifest, const Json& object, const std::vector<std::string_view>& lines) {
  Split split{.name = object.at("name").get<std::string>(), .n_samples = number(object, "n_samples")};
  split.shards.reserve(lines.size());
  std::uint64_t total = 0;
  for (const std::string_view line : lines) {
    split.shards.push_back(shard_entry(core::parse_json<Json>(line, "a shard", shard_document)));
    check_room(manifest, split.shards.back());
    total = add(total, split.shards.back().n_samples);
  }
  check(total == split.n_samples,
        fmt::format("split '{}' has {} samples, but its shards have {}", split.name, split.n_samples, total));
  return split;
}

SetSpec set_spec(const Json& object) {
  SetSpec spec{.x = array_spec(object.at("x")),
               .y = array_spec(object.at("y")),
               .encoding = object.at("encoding").get<std::string>(),
               .classes = object.at("classes").get<std::vector<std::string>>()};
  check(spec.encoding == "raw" || spec.encoding == "image", fmt::format("unknown encoding '{}'", spec.encoding));
  check(!spec.is_encoded() || spec.x == ArraySpec{}, "an encoded x has a type or shape of its own");
  std::set<std::string_view> classes;
  for (const std::string& name : spec.classes)
    check(classes.insert(name).second, fmt::format("two classes are called '{}'", name));
  check(spec.classes.empty() || !core::is_floating(spec.y.dtype),
        "there are classes, but labels are not whole numbers");
  return spec;
}

void check_names(const Manifest& manifest) {
  std::set<std::string_view> files, splits;
  for (const Split& split : manifest.splits) {
    check(!split.name.empty() && splits.insert(split.name).second,
          "a split has no name, or one that another split has");
    check(io::is_plain_name(split.name), fmt::format("'{}' cannot be the name of a split", split.name));
    for (const ShardEntry& shard : split.shards)
      check(files.insert(shard.file).second, fmt::format("{} is named twice", shard.file));
  }
  for (const ExtraEntry& extra : manifest.extras)
    check(files.insert(extra.file).second, fmt::format("{} is named twice", extra.file));
}

Manifest parse_body(std::string_view body) {
  Lines lines = sort_lines(body);
  lines.skeleton += "  \"digest\": \"\"\n}\n";
  const Json root = core::parse_json<Json>(lines.skeleton, std::string{manifest_name}, skeleton_document);
  Manifest manifest{.spec = set_spec(root), .chunk_samples = number(root, "chunk_samples")};
  const auto filter = io::find_filter(root.at("filter").get<std::string>());
  check(filter.has_value(), "unknown filter");
  manifest.filter = *filter;
  check((manifest.chunk_samples == 0) == manifest.spec.is_encoded(), "'chunk_samples' does not match 'encoding'");
  const std::uint64_t widest = std::max({manifest.spec.x.bytes(), manifest.spec.y.bytes(), sizeof(std::uint64_t)});
  check(manifest.chunk_samples <= most_chunk_bytes / widest, "a chunk is larger than 4 GiB");
  const Json& splits = root.at("splits");
  check(splits.size() == lines.shards.size(), "a split does not begin its line");
  for (std::size_t i = 0; i < splits.size(); ++i)
    manifest.splits.push_back(make_split(manifest, splits[i], lines.shards[i]));
  for (const Json& extra : root.at("extras"))
    manifest.extras.push_back(
        {.file = file_name(extra), .bytes = number(extra, "bytes"), .digest = extra.at("digest").get<std::string>()});
  if (root.contains("notes")) manifest.notes = root.at("notes").get<std::vector<std::string>>();
  check_names(manifest);
  return manifest;
}

// The version that a text claims in its third line, whatever follows.
std::optional<int> claimed_version(std::string_view text) {
  const std::string before = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": ", manifest_format);
  if (!text.starts_with(before)) return std::nullopt;
  int version = 0;
  const std::string_view rest = text.substr(before.size());
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), version);
  if (status != std::errc{} || end == rest.data() + rest.size() || *end != ',') return std::nullopt;
  return version;
}

// Newer versions may be sealed in another way, so they are recognised with or without this seal.
void check_seal(std::string_view text, const std::string& where) {
  const std::optional<Sealed> sealed = split_seal(text);
  const std::optional<int> version = claimed_version(text);
  const std::string found = sealed ? io::digest_of(std::as_bytes(std::span{sealed->body})) : "";
  if (version.value_or(0) > manifest_version && (!sealed || found == sealed->digest))
    core::fail_usage({.what = fmt::format("the set has format version {}", *version),
                      .where = where,
                      .expected = fmt::format("version {}, which this program reads", manifest_version),
                      .fix = "read it with a newer Lockstep, or make it again with this one"});
  if (!sealed && !version)
    core::fail_usage({.what = "this is not a manifest of shards",
                      .where = where,
                      .expected = "JSON made by `lockstep shard`",
                      .fix = "copy or make the set again, or give a folder that `lockstep shard import` or `lockstep "
                             "shard synth` has made"});
  if (!sealed) fail_damaged("the manifest does not end with its digest: it is truncated or changed", where);
  if (found != sealed->digest)
    fail_damaged(fmt::format("the manifest is changed: digest expected {}, found {}", sealed->digest, found), where);
}

std::string path_of(const std::string& folder) { return fmt::format("{}/{}", folder, manifest_name); }

std::string read_text_of(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored, hidden;
  const bool is_missing = !fs::exists(path_of(folder), hidden) && !hidden;  // otherwise io::read_text gives the reason
  if (fs::exists(folder, ignored) && is_missing)
    core::fail_usage({.what = fmt::format("'{}' is not a set of shards: {}", folder,
                                          fs::is_directory(folder, ignored) ? fmt::format("it has no {}", manifest_name)
                                                                            : "it is a file"),
                      .where = "FOLDER",
                      .expected = "a folder that `lockstep shard` has made",
                      .fix = "make one with `lockstep shard import` or `lockstep shard synth`"});
  return io::read_text(path_of(folder));
}

}  // namespace

core::Bytes Split::stored_bytes() const noexcept {
  core::Bytes sum;
  for (const ShardEntry& shard : shards) sum.value += shard.bytes;
  return sum;
}

const Split& Manifest::split(std::string_view name, std::string_view folder) const {
  if (name.empty() && !splits.empty()) return splits.front();
  std::vector<std::string> names;
  for (const Split& candidate : splits) {
    if (candidate.name == name) return candidate;
    names.push_back(candidate.name);
  }
  core::fail_usage({.what = fmt::format("there is no split '{}'", name),
                    .where = std::string{folder},
                    .expected = fmt::format("one of {}", core::join(names))});
}

std::vector<ManifestFile> Manifest::files() const {
  std::vector<ManifestFile> files;
  for (const Split& split : splits) {
    std::uint64_t first = 0;
    for (const ShardEntry& shard : split.shards) {
      files.push_back({shard.file, shard.bytes, shard.digest, &shard, first});
      first += shard.n_samples;
    }
  }
  for (const ExtraEntry& extra : extras) files.push_back({extra.file, extra.bytes, extra.digest, nullptr});
  return files;
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  check_seal(text, where);
  std::string complaint;
  try {
    check(claimed_version(text) == manifest_version, "it does not name its format and version");
    Manifest manifest = parse_body(split_seal(text)->body);
    check(serialize(manifest) == text, "its layout differs from that in the page shards.md, or it has unknown members");
    return manifest;
  } catch (const Malformed& malformed) {
    complaint = malformed.what();
  } catch (const core::Error& error) {
    complaint = fmt::format("{}; expected {}", error.problem().what, error.problem().expected);
  }
  core::fail_usage({.what = fmt::format("malformed manifest: {}", complaint),
                    .where = where,
                    .expected = "a manifest as the page shards.md describes it"});
}

Manifest read_manifest(const std::string& folder) { return parse_manifest(read_text_of(folder), path_of(folder)); }

Manifest read_manifest(const std::string& folder, const runtime::Communicator& world) {
  std::string text;
  runtime::together(world, [&] {
    if (world.rank() == 0) text = read_text_of(folder);
  });
  return parse_manifest(world.broadcast(text), path_of(folder));
}

}  // namespace lockstep::data
