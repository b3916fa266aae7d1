// Outputs of results: a table on stdout, and JSON and CSV files.
// Invariant: lives on rank 0; each file on disk is whole and valid, however the run ends, and has every size except,
// for long files, those of the last second.
// Used by the run; the three writers behind it are tested alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/device_plan.hpp"
#include "core/timer.hpp"
#include "reduce_all/cores.hpp"
#include "reduce_all/links.hpp"
#include "reduce_all/options.hpp"
#include "reduce_all/result.hpp"
#include "reduce_all/verify.hpp"
#include "runtime/environment.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"

namespace lockstep::reduce_all {

/// What is known before the first measurement.
struct BenchmarkInfo {
  Options options;
  runtime::Environment environment;
  runtime::Topology topology;
  std::vector<std::string> algorithms{};
  std::string chosen{};               ///< the algorithm that `auto` runs; empty if it does not take part
  std::vector<std::string> warnings;  ///< reasons to doubt the numbers
  std::string limit;                  ///< the reference of the percentages
  std::optional<CoreReach> cores;     ///< nothing if that is not measured
  std::string why_no_cores;           ///< the reason, if so; empty for one rank
  int simulated_nodes = 0;            ///< by --ranks-per-node; 0: the nodes are real
  runtime::DeviceChoice device{};
  std::optional<HostLink> host_link{};  ///< nothing for the host, or if there is no memory to measure it
  comm::AllConnections connections{};
  std::string nccl{};                                          ///< its version; empty without
  comm::Registration registration = comm::Registration::none;  ///< in effect
  bool graph = false;                                          ///< likewise
};

/// A wrong element as the user reads it.
struct WrongElement {
  std::string algorithm;
  comm::Call call;
  int rank = 0;
  std::string host;
  Mismatch mismatch;  ///< of that rank
};

/// How a run ended.
struct Outcome {
  bool is_complete = true;   ///< everything requested is measured
  std::string cut_short_by;  ///< why it ended early, and what is missing; empty if it did not
  int signal = 0;            ///< the signal that ended it, or 0
  std::uint64_t n_wrong = 0;
  int n_repeated = 0;  ///< calls that were measured again, because cores moved
};

/// "interrupted (SIGINT)": the effect of a signal that ended a run.
[[nodiscard]] std::string name_end(int signal);

/// Text of the table: lines before it, one line per row, lines after it.
[[nodiscard]] std::string text_header(const BenchmarkInfo& info);
[[nodiscard]] std::string text_rows(std::span<const Row> rows_of_one_call);
[[nodiscard]] std::string text_wrong(const WrongElement& wrong);
[[nodiscard]] std::string text_closing(std::span<const Row> rows, const Outcome& outcome);

/// The constant part, the document of it and rows, and one row; every key as in share/schemas/reduce_all-1.schema.json.
[[nodiscard]] std::string json_meta(const BenchmarkInfo& info);
[[nodiscard]] std::string json_document(const std::string& meta, const std::string& rows, bool is_complete,
                                        const std::string& visits = "", const std::string& comparison = "");
[[nodiscard]] std::string json_row(const Row& row);
[[nodiscard]] std::string json_visits(std::span<const Visited> visited, bool in_place);

[[nodiscard]] std::string csv_header();
[[nodiscard]] std::string csv_row(const Row& row);

class Report {
 public:
  /// Claims the result files; throws core::Error (usage) if one cannot be written. Prints nothing yet.
  explicit Report(const Options& options);

  void begin(const BenchmarkInfo& info);
  /// All rows of one call, fastest marked.
  void add(const std::vector<Row>& rows_of_one_call);
  void add_wrong(const WrongElement& wrong);
  void add_visits(std::span<const Visited> visited, bool in_place);
  /// `is_closed`: the closing lines are already printed.
  void end(const Outcome& outcome, bool is_closed);
  /// The present content of the JSON file, if there is one; after begin().
  [[nodiscard]] std::string document(bool is_complete) const;
  /// `comparison`: a member of the JSON file.
  void add_comparison(std::string comparison, const Outcome& outcome);

  [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }

 private:
  void write_files(bool is_complete);

  std::vector<Row> rows_;
  std::string json_path_;  ///< empty: not requested
  bool has_document_;      ///< for the file, or to be compared
  std::string csv_path_;
  std::string json_meta_;
  std::string json_rows_;
  std::string json_visits_;
  std::string json_comparison_;
  std::string csv_text_;
  core::Stopwatch since_writing_;
};

}  // namespace lockstep::reduce_all
