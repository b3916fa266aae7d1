// lockstep ckpt ls: the checkpoints of a run, and where each stands.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include "checkpoint/folder.hpp"
#include "core/print.hpp"
#include "core/printable.hpp"
#include "core/suggest.hpp"
#include "core/table.hpp"
#include "training/ckpt/checkpoints.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

/// Nothing if the run has removed it meanwhile.
std::optional<std::string> row_of(const core::Table& table, const std::string& path) {
  const std::string name = core::printable(std::filesystem::path{path}.filename().string());
  try {
    const checkpoint::Checkpoint one{path};
    one.check_files();
    std::vector<std::string> words{"complete"};
    std::ranges::copy(checkpoint::names_of(path), std::back_inserter(words));
    const Place place = place_of(one);
    return table.row({name, std::to_string(place.epoch), std::to_string(place.step), std::to_string(place.samples_seen),
                      core::format_decimal(one.bytes()), std::to_string(one.n_files()), core::join(words)});
  } catch (const core::Error& error) {
    if (checkpoint::is_gone(path)) return std::nullopt;
    if (error.code() == core::ExitCode::system) throw;
    return table.row({name, "-", "-", "-", "-", "-", error.problem().what});
  }
}

/// Where one was removed meanwhile there may be others than were listed.
std::vector<std::string> rows_of(const core::Table& table, const std::string& folder) {
  constexpr int most_lists = 100;
  std::vector<std::string> rows;
  bool has_changed = true;
  for (int n_lists = 0; has_changed && n_lists < most_lists; ++n_lists) {
    rows.clear();
    has_changed = false;
    for (const std::string& path : require_checkpoints(folder)) {
      const auto row = row_of(table, path);
      has_changed = has_changed || !row;
      if (row) rows.push_back(*row);
    }
  }
  return rows;
}

core::ExitCode list(const std::string& folder) {
  const core::Table table{{{.header = "checkpoint", .unit = "", .width = 16, .align = core::Align::left},
                           {.header = "epoch", .unit = "", .width = 6},
                           {.header = "step", .unit = "", .width = 10},
                           {.header = "samples", .unit = "", .width = 12},
                           {.header = "size", .unit = "", .width = 9},
                           {.header = "files", .unit = "", .width = 6},
                           {.header = "state", .unit = "", .align = core::Align::left}}};
  const std::vector<std::string> rows = rows_of(table, folder);
  core::print(table.header());
  for (const std::string& row : rows) core::print(row);
  return core::ExitCode::ok;
}

}  // namespace

std::string ls_help() {
  return R"(  lockstep ckpt ls r

The newest first: epoch and step that the run would go on with, samples seen before. `complete` is what has its index, its
mark and all files as large as they were; lockstep ckpt verify reads them, too. `best` and `epoch-010` are other names, by which
lockstep train keeps it.

)";
}

Action declare_ls(core::Flags& flags) {
  auto folder = std::make_shared<std::string>();
  flags.word("FOLDER", *folder);
  return {.check = {}, .run = [folder](const runtime::Session& session) {
            return on_first_rank(session, [&] { return list(*folder); });
          }};
}

}  // namespace lockstep::training::ckpt
