#include "checkpoint/index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/content.hpp"
#include "checkpoint/folder.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/version.hpp"

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

constexpr const char* schema = "lockstep.checkpoint";
constexpr std::uint64_t schema_version = 1;
constexpr std::uint64_t most_elements = std::uint64_t{1} << 48;  // of a tensor: a PB

bool is_tensor_name(std::string_view name) { return name.find('\0') == std::string_view::npos; }

constexpr core::JsonRule extent_rule{.kind = core::JsonKind::whole, .least = 1, .most = most_elements};
constexpr std::array piece_fields{
    core::JsonField{"tensor", {.kind = core::JsonKind::text, .least = 1, .most = 1024, .fits = is_tensor_name}},
    core::JsonField{"shape", {.kind = core::JsonKind::list, .least = 1, .most = 32, .each = &extent_rule}},
    core::JsonField{"outer", extent_rule},
    core::JsonField{"rows", extent_rule},
    core::JsonField{"inner", extent_rule},
    core::JsonField{"first_row", {.kind = core::JsonKind::whole, .most = most_elements}},
    core::JsonField{"n_rows_here", extent_rule},
    core::JsonField{"digest", core::json_digest}};
constexpr core::JsonRule piece_rule{.kind = core::JsonKind::object, .fields = piece_fields};
constexpr std::array file_fields{
    core::JsonField{"name",
                    {.kind = core::JsonKind::text,
                     .fits = is_rank_file,
                     .expected = "the name of a file in the folder of the checkpoint, such as rank-00000.h5"}},
    core::JsonField{"bytes", {.kind = core::JsonKind::whole, .most = std::uint64_t{1} << 60}},
    core::JsonField{"digest", core::json_digest},
    core::JsonField{"pieces", {.kind = core::JsonKind::list, .each = &piece_rule}}};
constexpr core::JsonRule file_rule{.kind = core::JsonKind::object, .fields = file_fields};

// The version determines the fields.
constexpr std::array version_fields{core::JsonField{"schema", core::json_text},
                                    core::JsonField{"schema_version", core::json_whole}};
constexpr core::JsonDocument any_version{.what = "an index of a checkpoint",
                                         .rule = {.kind = core::JsonKind::object, .fields = version_fields},
                                         .fix = damaged_fix};

Json to_json(const PieceRecord& piece) {
  return {{"tensor", piece.box.tensor},          {"shape", piece.box.shape},
          {"outer", piece.box.n_outer},          {"rows", piece.box.n_rows},
          {"inner", piece.box.n_inner},          {"first_row", piece.box.rows.offset},
          {"n_rows_here", piece.box.rows.count}, {"digest", piece.digest}};
}

PieceRecord piece_of(const Json& json) {
  PieceRecord piece;
  piece.box = {.tensor = json.at("tensor"),
               .shape = json.at("shape"),
               .n_outer = json.at("outer"),
               .n_rows = json.at("rows"),
               .n_inner = json.at("inner"),
               .rows = {json.at("first_row"), json.at("n_rows_here")}};
  piece.digest = json.at("digest");
  return piece;
}

Json to_json(const FileRecord& file) {
  Json pieces = Json::array();
  for (const PieceRecord& piece : file.pieces) pieces.push_back(to_json(piece));
  return {{"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}, {"pieces", pieces}};
}

FileRecord file_of(const Json& json) {
  FileRecord file{.name = json.at("name"), .bytes = json.at("bytes"), .digest = json.at("digest")};
  for (const Json& piece : json.at("pieces")) file.pieces.push_back(piece_of(piece));
  return file;
}

/// Rows of a tensor, and the field of the index that names them.
struct PieceAt {
  const Box* box;
  std::string field;
};

[[noreturn]] void refuse_piece(const std::string& where, const std::string& field, const std::string& says,
                               std::string expected) {
  core::refuse_field(where, field, says, std::move(expected), damaged_fix);
}

/// Checks that the rows exist in the tensor, and that the tensor has as many elements as its shape says.
void check_piece(const Box& box, const std::string& where, const std::string& field) {
  const auto product_of = [&](std::initializer_list<std::uint64_t> sizes, std::span<const std::uint64_t> more) {
    std::uint64_t product = 1;
    const auto take = [&](std::uint64_t n) {
      if (__builtin_mul_overflow(product, n, &product) || product > most_elements)
        refuse_piece(where, field, "has too many elements", fmt::format("a tensor of at most {}", most_elements));
    };
    std::ranges::for_each(sizes, take);
    std::ranges::for_each(more, take);
    return product;
  };
  const std::uint64_t n = product_of({}, box.shape), n_cut = product_of({box.n_outer, box.n_rows, box.n_inner}, {});
  if (n != n_cut)
    refuse_piece(where, field, fmt::format("is cut into {} x {} x {} elements", box.n_outer, box.n_rows, box.n_inner),
                 fmt::format("the {} elements of its shape", n));
  if (box.rows.offset >= box.n_rows || box.rows.count > box.n_rows - box.rows.offset)
    refuse_piece(where, field + ".n_rows_here", fmt::format("is {}", box.rows.count),
                 fmt::format("rows of the {}, from row {} on", box.n_rows, box.rows.offset));
}

/// Checks that every row of a tensor occurs once.
void check_cover(std::vector<PieceAt>& pieces, const std::string& where) {
  std::ranges::sort(pieces, {}, [](const PieceAt& piece) { return piece.box->rows.offset; });
  const Box& first = *pieces.front().box;
  std::size_t next = 0;
  for (const PieceAt& piece : pieces) {
    const Box& box = *piece.box;
    if (box.shape != first.shape || box.n_outer != first.n_outer || box.n_rows != first.n_rows)
      refuse_piece(where, piece.field, "has a different shape, or is cut differently",
                   fmt::format("the same as {}, a piece of the same tensor", pieces.front().field));
    if (box.rows.offset != next)
      refuse_piece(where, piece.field + ".first_row", fmt::format("is {}", box.rows.offset),
                   fmt::format("{}, so that every row of {} occurs once", next, box.tensor));
    next = box.rows.end();
  }
  if (next != first.n_rows)
    refuse_piece(where, pieces.back().field,
                 fmt::format("has the last rows of {}, which end at row {}", first.tensor, next),
                 fmt::format("all {} rows across the files", first.n_rows));
}

/// Checks what the tables of fields cannot express.
void check_files(const std::vector<FileRecord>& files, const std::string& where) {
  std::set<std::string_view> names;
  std::map<std::string_view, std::vector<PieceAt>> tensors;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!names.insert(files[i].name).second)
      refuse_piece(where, fmt::format("files[{}].name", i), fmt::format("repeats '{}'", files[i].name),
                   "each file once");
    for (std::size_t k = 0; k < files[i].pieces.size(); ++k) {
      const Box& box = files[i].pieces[k].box;
      const std::string field = fmt::format("files[{}].pieces[{}]", i, k);
      check_piece(box, where, field);
      tensors[box.tensor].push_back({&box, field});
    }
  }
  for (auto& [tensor, pieces] : tensors) check_cover(pieces, where);
}

}  // namespace

std::string to_text(const FileRecord& file) { return to_json(file).dump(); }

FileRecord parse_file_record(std::string_view text) {
  static constexpr core::JsonDocument record{.what = "the record of a file", .rule = file_rule};
  return file_of(core::parse_json<Json>(text, "the record that a rank wrote", record));
}

std::string to_text(const Index& index) {
  Json files = Json::array();
  for (const FileRecord& file : index.files) files.push_back(to_json(file));
  const Json json{{"schema", schema},
                  {"schema_version", schema_version},
                  {"made_by", fmt::format("lockstep {}", core::version())},
                  {"content", Json::parse(index.content)},
                  {"files", files}};
  return json.dump(1) + "\n";
}

Index parse_index(std::string_view text, const std::string& where) {
  const Json json = core::parse_json<Json>(text, where, any_version);
  if (json.at("schema") != schema)
    core::refuse_field(where, "schema", fmt::format("is '{}'", json.at("schema").get<std::string>()),
                       fmt::format("'{}'", schema), damaged_fix);
  if (const std::uint64_t version = json.at("schema_version"); version > schema_version)
    core::fail_usage({.what = fmt::format("'{}' has format version {}", where, version),
                      .expected = fmt::format("at most version {}", schema_version),
                      .fix = std::string{newer_fix}});
  const std::array fields{core::JsonField{"content", any_content},
                          core::JsonField{"files", {.kind = core::JsonKind::list, .least = 1, .each = &file_rule}}};
  core::check_json(json, where, "", {.kind = core::JsonKind::object, .fields = fields}, damaged_fix);
  check_content(json.at("content"), where, "content");
  Index index{.content = json.at("content").dump()};
  for (const Json& file : json.at("files")) index.files.push_back(file_of(file));
  check_files(index.files, where);
  return index;
}

}  // namespace lockstep::checkpoint
