#include "reduce_all/report.hpp"

#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"

namespace lockstep::reduce_all {
namespace {

// Time between two writes of the files, which are long for many ranks or samples.
constexpr double least_wait_s = 1;

void replace(const std::string& path, const std::string& content) try {
  core::write_whole(path, std::as_bytes(std::span{content}));
} catch (const core::Error& error) {
  const std::string& fix = error.problem().fix;
  throw core::Error{core::ExitCode::system,
                    {.what = error.problem().what,
                     .fix = (fix.empty() ? "free space" : fix) +
                            "; then measure again: if the file exists, it has the rows up to this point"}};
}

}  // namespace

Report::Report(const Options& options)
    : json_path_{options.json},
      has_document_{!options.json.empty() || !options.baseline.empty()},
      csv_path_{options.csv} {
  if (!json_path_.empty()) core::check_writable(json_path_, "--json");
  if (!csv_path_.empty()) core::check_writable(csv_path_, "--csv");
}

void Report::begin(const BenchmarkInfo& info) {
  if (has_document_) json_meta_ = json_meta(info);
  csv_text_ = csv_header();
  core::print(text_header(info));
  write_files(false);  // so that a file of an earlier run is never taken for this run's
}

void Report::add(const std::vector<Row>& rows_of_one_call) {
  for (const Row& row : rows_of_one_call) {
    json_rows_ += (rows_.empty() ? "" : ",\n") + json_row(row);
    csv_text_ += csv_row(row);
    rows_.push_back(row);
    rows_.back().samples_us.clear();  // they live on in the text
  }
  core::print(text_rows(rows_of_one_call));
  if (since_writing_.elapsed().value > least_wait_s) write_files(false);
}

void Report::add_wrong(const WrongElement& wrong) { core::print(text_wrong(wrong)); }

void Report::add_visits(std::span<const Visited> visited, bool in_place) {
  if (has_document_) json_visits_ = json_visits(visited, in_place);
}

void Report::end(const Outcome& outcome, bool is_closed) {
  write_files(outcome.is_complete);
  if (!is_closed) core::print(text_closing(rows_, outcome));
}

std::string Report::document(bool is_complete) const {
  return json_document(json_meta_, json_rows_, is_complete, json_visits_, json_comparison_);
}

void Report::add_comparison(std::string comparison, const Outcome& outcome) {
  json_comparison_ = std::move(comparison);
  write_files(outcome.is_complete);
}

void Report::write_files(bool is_complete) {
  if (!json_path_.empty()) replace(json_path_, document(is_complete));
  if (!csv_path_.empty()) replace(csv_path_, csv_text_);
  since_writing_ = {};
}

}  // namespace lockstep::reduce_all
