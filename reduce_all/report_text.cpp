#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>

#include "core/suggest.hpp"
#include "core/table.hpp"
#include "reduce_all/cores_text.hpp"
#include "reduce_all/participants.hpp"
#include "reduce_all/report.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::reduce_all {
namespace {

core::Table make_table(bool is_on_host) {
  using core::Align;
  return core::Table{
      {{"size", "(B)", 11, Align::right},
       {"count", "", 10, Align::right},
       {"type", "", 8, Align::right},
       {"op", "", 4, Align::right},
       {"algorithm", "", 18, Align::left},
       {"time p50", "(us)", 9, Align::right},
       {"95 % interval", "(us)", 19, Align::right},
       {"p99", "(us)", 8, Align::right},
       {"algbw", "(GB/s)", 7, Align::right},
       {"busbw", "(GB/s)", 7, Align::right},
       {"%limit", "", 6, Align::right},
       {"wrong", "", 5, Align::right},
       {"iters", "", 5, Align::right},
       is_on_host ? core::Column{"cores", "(ns)", 9, Align::right} : core::Column{"GPU p50", "(us)", 9, Align::right},
       {"best", "", 4, Align::left}},
      "# "};
}

// These times are not precise to more than four digits.
std::string microseconds(double us) {
  if (us < 10) return fmt::format("{:.3f}", us);
  if (us < 100) return fmt::format("{:.2f}", us);
  return fmt::format("{:.{}f}", us, us < 1000 ? 1 : 0);
}

std::string interval(const Row& row) {
  if (!row.time_us_p50_low || !row.time_us_p50_high) return "-";
  return fmt::format("[{}, {}]", microseconds(*row.time_us_p50_low), microseconds(*row.time_us_p50_high));
}

std::string rate(double GBps) { return fmt::format("{:.{}f}", GBps, GBps < 0.1 ? 4 : GBps < 100 ? 2 : 1); }

std::vector<std::string> cells(const Row& row, bool is_best_row) {
  return {fmt::format("{}", row.bytes),
          fmt::format("{}", row.count),
          row.dtype,
          row.op,
          row.algorithm,
          microseconds(row.time_us_p50),
          interval(row),
          row.time_us_p99 ? microseconds(*row.time_us_p99) : "-",
          row.moves_nothing ? "-" : rate(row.algbw_GBps),
          row.moves_nothing ? "-" : rate(row.busbw_GBps),
          row.moves_nothing ? "-" : fmt::format("{:.1f}", row.limit_percent),
          row.wrong ? fmt::format("{}", *row.wrong) : "-",
          fmt::format("{}", row.iterations),
          row.device_time_us_p50 ? microseconds(*row.device_time_us_p50) : cores_cell(row),
          is_best_row ? "*" : ""};
}

// Returns the names of the participants whose library itself decides what min and max of a NaN are.
std::vector<std::string> librarys_own(const BenchmarkInfo& info) {
  std::vector<std::string> names;
  for (const std::string& name : info.algorithms)
    if (const comm::Algorithm* const row = comm::find_algorithm(name);
        row != nullptr && (is_the_librarys(name) || row->needs == comm::Needs::own_devices))
      names.push_back(name);
  return names;
}

// Our code combines 16-bit floats on the host.
bool may_differ_in_nan(const BenchmarkInfo& info) {
  const auto has = [](const auto& all, std::initializer_list<std::ranges::range_value_t<decltype(all)>> any) {
    return std::ranges::find_first_of(all, any) != all.end();
  };
  return info.options.collective != comm::Collective::all_gather && !librarys_own(info).empty() &&
         has(info.options.op, {comm::ReduceOp::min, comm::ReduceOp::max}) &&
         (has(info.options.dtype, {core::DType::float32, core::DType::float64}) ||
          (!info.device.is_host() && has(info.options.dtype, {core::DType::float16, core::DType::bfloat16})));
}

std::string how_it_was_timed(const Options& options) {
  const std::string checked = options.check > 0 ? fmt::format("{} checked runs per row, all elements", options.check)
                                                : std::string{"results not checked (-c 0)"};
  return fmt::format("sync {} ({}), buffers {}, {}, {}, seed {}", name(options.sync),
                     options.sync == Sync::barrier ? "a barrier before each sample" : "samples back to back",
                     name(options.buffers), options.in_place ? "in place" : "out of place", checked, options.seed);
}

std::string about_cores(std::span<const Row> rows, const Outcome& outcome) {
  std::string text;
  if (outcome.n_repeated > 0)
    text += fmt::format("# cores moved: sizes were measured again {} time{}\n", outcome.n_repeated,
                        outcome.n_repeated == 1 ? "" : "s");
  if (const std::string moving = name_moving(rows); !moving.empty())
    text += fmt::format(
        "# cores moved while rows marked `>` were measured, and again when these rows were repeated: {}\n", moving);
  if (const std::string distances = name_distances(rows); !distances.empty())
    text += fmt::format(
        "# distances between cores changed, so compare algorithms only within one size: round trip of {}\n", distances);
  return text;
}

// ", NCCL 2.28.9 (network IB, 24 channels)": the known facts.
std::string about_nccl(const BenchmarkInfo& info) {
  if (info.nccl.empty()) return "";
  std::string details;
  if (!info.connections.networks.empty()) details = "network " + info.connections.networks;
  if (info.connections.n_channels > 0)
    details += fmt::format("{}{} channels", details.empty() ? "" : ", ", info.connections.n_channels);
  return fmt::format(", NCCL {}{}", info.nccl, details.empty() ? "" : " (" + details + ")");
}

// "2 GPUs, such as NVIDIA H200 (GPU-...), CUDA 13.0, driver for CUDA 13.0, NCCL 2.28.9"; or why it is the host.
std::string about_device(const BenchmarkInfo& info) {
  const runtime::DeviceChoice& device = info.device;
  if (device.is_host())
    return device.why_not.empty() ? "" : fmt::format("# device: host, because {}\n", device.why_not);
  const std::size_t n_gpus = std::set<std::string>{device.all.begin(), device.all.end()}.size();
  return fmt::format("# device: {}{} ({}){}, CUDA {}, driver for CUDA {}{}{}{}\n",
                     n_gpus == 1 ? "" : fmt::format("{} GPUs, such as ", n_gpus), device.gpu.name, device.gpu.uuid,
                     device.is_shared ? ", shared by ranks" : "", device.toolkit, device.driver, about_nccl(info),
                     info.registration != comm::Registration::none
                         ? fmt::format("; vectors are registered with NCCL ({})", comm::name(info.registration))
                         : "",
                     info.graph ? "; a graph replays the calls, except those through the host" : "");
}

std::string about_one_rank(const BenchmarkInfo& info) {
  const bool in_place = info.options.in_place;
  if (info.device.is_host())
    return in_place ? ", and nothing to copy in place: these are empty calls without rates"
                    : "; algbw and busbw are the rate at which input is copied to output";
  return in_place ? "; NCCL and mpi:device do nothing in place and have no rates; staged copies to the host and back, "
                    "and its busbw is algbw"
                  : "; NCCL copies input to output, staged copies to the host and back, and mpi:device is one call of "
                    "MPI; busbw is algbw";
}

}  // namespace

std::string text_header(const BenchmarkInfo& info) {
  const runtime::Environment& e = info.environment;
  std::string text = fmt::format("# reduce_all {} ({}, {})\n", e.lockstep, e.compiler, e.build_type);
  text += fmt::format("# ranks {}, nodes {}: {}\n", info.topology.places.size(), info.topology.n_nodes,
                      info.topology.binding());
  if (info.simulated_nodes > 0)
    text += fmt::format("# simulated nodes {}: up to {} ranks each; messages between them do not leave this machine\n",
                        info.simulated_nodes, info.options.ranks_per_node);
  text += fmt::format("# MPI: {} (standard {})\n# CPU: {}\n", e.mpi_library, e.mpi_standard, e.cpu_model);
  text += about_device(info);
  if (info.host_link)
    text += fmt::format("# host link: {}\n", describe_host_link(*info.host_link, info.topology.places.size()));
  text += fmt::format("# {}: {}\n", comm::name(info.options.collective), core::join(info.algorithms));
  if (!info.chosen.empty()) text += fmt::format("# {}: the choice of lockstep train: {}\n", auto_name, info.chosen);
  if (may_differ_in_nan(info))
    text += fmt::format("# {}: the library decides what min and max of a NaN are; all other algorithms return NaN\n",
                        core::join(librarys_own(info)));
  text += fmt::format("# {}\n", how_it_was_timed(info.options));
  text += fmt::format(
      "# time: median over the samples of the slowest rank's time; a sample is one run, or the mean of a block of runs "
      "{}\n",
      info.device.is_host() ? "below 10 us" : "with hot buffers");
  if (!info.device.is_host())
    text +=
        "# time is the host's, from the first of up to 20 runs to the end of the wait for the GPU; GPU p50 is the "
        "GPU's, between events around a call that is queued behind others\n";
  text += fmt::format("# %limit: {}\n", info.limit);
  if (info.topology.places.size() == 1)
    text += fmt::format("# one rank: there is no communication{}\n", about_one_rank(info));
  if (info.cores)
    text += fmt::format("# cores: {}\n", describe_cores(*info.cores, info.topology.places.size()));
  else if (!info.why_no_cores.empty())
    text += fmt::format("# cores: {}\n", info.why_no_cores);
  for (const std::string& warning : info.warnings) text += fmt::format("# WARNING: {}\n", warning);
  return text + "#\n" + make_table(info.device.is_host()).header();
}

std::string text_rows(std::span<const Row> rows) {
  const bool is_on_host = std::ranges::none_of(rows, [](const Row& row) { return row.device_time_us_p50.has_value(); });
  const core::Table table = make_table(is_on_host);
  const bool is_contest = rows.size() > 1 && std::ranges::none_of(rows, &Row::moves_nothing);
  std::string text;
  for (const Row& row : rows) text += table.row(cells(row, is_contest && is_best(row, rows)));
  return text;
}

std::string text_wrong(const WrongElement& wrong) {
  const core::Bytes bytes = wrong.call.bytes();
  return fmt::format(
      "# WRONG: {} of {} {}, {}: rank {} on {}, index {}: expected {}, found {}; {} wrong elements in the checked runs "
      "of this row\n",
      comm::name(wrong.call.collective), core::format_bytes(bytes), core::name(wrong.call.dtype), wrong.algorithm,
      wrong.rank, wrong.host, wrong.mismatch.index, format_element(wrong.call.dtype, wrong.mismatch.expected),
      format_element(wrong.call.dtype, wrong.mismatch.found), wrong.mismatch.n_wrong);
}

std::string name_end(int signal) {
  return fmt::format("{} ({})", signal == SIGINT ? "interrupted" : "terminated", runtime::signal_name(signal));
}

std::string text_closing(std::span<const Row> rows, const Outcome& outcome) {
  double sum = 0;
  std::size_t n_moving = 0;
  for (const Row& row : rows) {
    if (row.moves_nothing) continue;
    sum += row.busbw_GBps;
    ++n_moving;
  }
  const double mean = n_moving == 0 ? 0 : sum / static_cast<double>(n_moving);
  std::string text;
  if (!outcome.cut_short_by.empty()) text += fmt::format("# not complete: {}\n", outcome.cut_short_by);
  const bool is_unchecked = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.wrong; });
  if (is_unchecked) text += "# not checked: rows whose `wrong` is - may have wrong results\n";
  text += about_cores(rows, outcome);
  // These two lines are those of nccl-tests, letter for letter (except for unchecked or empty calls): programs read
  // them.
  const bool is_checked = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong.has_value(); });
  text += is_checked || outcome.n_wrong > 0
              ? fmt::format("# Out of bounds values : {} {}\n", outcome.n_wrong, outcome.n_wrong == 0 ? "OK" : "FAILED")
              : "# Out of bounds values : not checked\n";
  text += rows.empty() || n_moving > 0 ? fmt::format("# Avg bus bandwidth    : {:g} \n", mean)
                                       : "# Avg bus bandwidth    : none, because nothing moves\n";
  return text;
}

}  // namespace lockstep::reduce_all
