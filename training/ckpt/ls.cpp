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

struct Row {
  std::string text{};
  core::ExitCode code = core::ExitCode::ok;
};

/// Nothing if the run has removed it meanwhile.
std::optional<Row> row_of(const core::Table& table, const std::string& path) {
  const std::string name = core::printable(std::filesystem::path{path}.filename().string());
  try {
    const checkpoint::Checkpoint one{path};
    one.check_files();
    checkpoint::refuse_misnamed(path, checkpoint::misnamed_reason(path, one.content()));
    std::vector<std::string> words{"complete"};
    std::ranges::copy(checkpoint::names_of(path), std::back_inserter(words));
    const SavedAt at = saved_at(one);
    return Row{table.row({name, std::to_string(at.epoch), std::to_string(at.step), std::to_string(at.samples_seen),
                          core::format_decimal(one.bytes()), std::to_string(one.n_files()), core::join(words)})};
  } catch (const core::Error& error) {
    if (checkpoint::is_gone(path)) return std::nullopt;
    if (error.code() == core::ExitCode::system) throw;
    return Row{table.row({name, "-", "-", "-", "-", "-", error.problem().what}), code_of(error, path)};
  }
}

/// Where one was removed meanwhile there may be others than were listed.
std::vector<Row> rows_of(const core::Table& table, const std::string& folder) {
  constexpr int most_lists = 100;
  std::vector<Row> rows;
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
  checkpoint::tell_links(checkpoint::folder_meant(folder));
  const std::vector<Row> rows = rows_of(table, folder);
  core::print(table.header());
  core::ExitCode code = core::ExitCode::ok;
  for (const Row& row : rows) {
    core::print(row.text);
    code = std::max(code, row.code);
  }
  return code;
}

}  // namespace

constexpr std::string_view ls_help = R"(  lockstep ckpt ls r

Lists checkpoints, the newest first: the epoch and step at which the run would continue, and the samples seen before. A
checkpoint is `complete` if it has its index, its mark, and all files at full size; lockstep ckpt verify also reads
them. `best` and `epoch-010` are other names of a checkpoint that lockstep train keeps. Exit code 0: all are complete;
1: one is damaged or incomplete, as its row says; 2: one has content that Lockstep never writes, or the name of another
step; 3: one could not be read. Symbolic links called step-N are not counted; a message names each.

)";

Action declare_ls(core::Flags& flags) {
  flags.note(ls_help);
  auto folder = std::make_shared<std::string>();
  flags.word("FOLDER", *folder);
  return {.check = {}, .run = [folder](const runtime::Session& session) {
            return on_first_rank(session, [&] { return list(*folder); });
          }};
}

}  // namespace lockstep::training::ckpt
