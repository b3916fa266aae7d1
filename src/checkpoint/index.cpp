#include "checkpoint/index.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/version.hpp"

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

constexpr const char* schema = "lockstep.checkpoint";
constexpr std::uint64_t schema_version = 1;

Json to_json(const Piece& piece) {
  return {{"tensor", piece.box.tensor},          {"shape", piece.box.shape},
          {"outer", piece.box.n_outer},          {"rows", piece.box.n_rows},
          {"inner", piece.box.n_inner},          {"first_row", piece.box.rows.offset},
          {"n_rows_here", piece.box.rows.count}, {"digest", piece.digest}};
}

Piece piece_of(const Json& json) {
  Piece piece;
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
  for (const Piece& piece : file.pieces) pieces.push_back(to_json(piece));
  return {{"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}, {"pieces", pieces}};
}

FileRecord file_of(const Json& json) {
  FileRecord file{.name = json.at("name"), .bytes = json.at("bytes"), .digest = json.at("digest")};
  for (const Json& piece : json.at("pieces")) file.pieces.push_back(piece_of(piece));
  return file;
}

}  // namespace

std::string to_text(const FileRecord& file) { return to_json(file).dump(); }

FileRecord parse_file_record(std::string_view text) try {
  return file_of(Json::parse(text));
} catch (const Json::exception& error) {
  throw core::Error{core::ExitCode::system, {.what = fmt::format("no record of a file: {}", error.what())}};
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

Index parse_index(std::string_view text, const std::string& where) try {
  const Json json = Json::parse(text);
  if (json.at("schema") != schema) core::fail_usage({.what = fmt::format("'{}' is no index of a checkpoint", where)});
  if (const std::uint64_t version = json.at("schema_version"); version > schema_version)
    core::fail_usage({.what = fmt::format("'{}' has version {} of the format", where, version),
                      .expected = fmt::format("at most version {}", schema_version),
                      .fix = "use a newer Lockstep"});
  Index index{.content = json.at("content").dump()};
  for (const Json& file : json.at("files")) index.files.push_back(file_of(file));
  return index;
} catch (const Json::exception& error) {
  core::fail_usage({.what = fmt::format("'{}' is no index of a checkpoint: {}", where, error.what())});
}

}  // namespace lockstep::checkpoint
