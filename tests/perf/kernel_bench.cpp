// How fast each GPU kernel moves its bytes, beside a copy by the device in the same run, which is the greatest possible
// rate: kernel_bench [MILLIONS OF ELEMENTS]. Exits with 77 without a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "core/print.hpp"
#include "core/table.hpp"
#include "kernel_rows.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/gpu.hpp"

namespace lockstep::perf {
namespace {

constexpr int exit_skipped = 77;

/// The median of seven launches, each between two marks of the device's clock.
double seconds_of(const KernelRow& row, runtime::Stream& stream) {
  constexpr std::size_t n_launches = 7;
  row.enqueue(stream);
  std::vector<std::pair<runtime::Event, runtime::Event>> marks;
  for (std::size_t i = 0; i < n_launches; ++i) {
    runtime::Event begin = stream.mark_time();
    row.enqueue(stream);
    marks.emplace_back(std::move(begin), stream.mark_time());
  }
  stream.wait();
  std::vector<double> seconds;
  for (const auto& [begin, end] : marks) seconds.push_back(end.since(begin).value);
  std::ranges::sort(seconds);
  return seconds[n_launches / 2];
}

KernelRow copy_row(KernelArrays& arrays, std::size_t n_bytes) {
  const auto from = runtime::DeviceSpan<std::byte>::at(arrays.make<std::byte>(n_bytes), n_bytes);
  const auto to = runtime::DeviceSpan<std::byte>::at(arrays.make<std::byte>(n_bytes), n_bytes);
  return {"copy", 2 * n_bytes,
          [=](runtime::Stream& stream) { stream.copy(to, runtime::DeviceSpan<const std::byte>{from}); }};
}

void measure(std::size_t n) {
  KernelArrays arrays;
  std::vector<KernelRow> rows{copy_row(arrays, 4 * n)};
  for (auto* const make : {network_rows, optimizer_rows, pattern_rows})
    for (KernelRow& row : make(arrays, n)) rows.push_back(std::move(row));
  runtime::Stream stream;
  const core::Table table{{{.header = "kernel", .width = 22, .align = core::Align::left},
                           {.header = "moves", .unit = "MB", .width = 8},
                           {.header = "time", .unit = "us", .width = 9},
                           {.header = "rate", .unit = "GB/s", .width = 6},
                           {.header = "of copy", .unit = "%"}}};
  core::print(table.header());
  double copied = 0;
  for (const KernelRow& row : rows) {
    const double seconds = seconds_of(row, stream), rate = static_cast<double>(row.n_bytes) / seconds;
    if (copied == 0) copied = rate;
    core::print(table.row({row.name, fmt::format("{:.1f}", static_cast<double>(row.n_bytes) * 1e-6),
                           fmt::format("{:.1f}", seconds * 1e6), fmt::format("{:.0f}", rate * 1e-9),
                           fmt::format("{:.0f}", 100 * rate / copied)}));
  }
}

int run(int argc, char** argv) {
  const double millions = argc > 1 ? std::atof(argv[1]) : 64;
  const auto blocks = static_cast<std::size_t>(millions * 1e6 / 65536);
  if (blocks == 0) {
    core::print("kernel_bench: expected a number of millions of elements, of 0.1 or more\n");
    return 2;
  }
  const runtime::GpuSurvey survey = runtime::survey_gpus();
  if (survey.gpus.empty()) {
    core::print(fmt::format("kernel_bench: nothing is measured: {}\n", survey.obstacle));
    return exit_skipped;
  }
  core::print(fmt::format("{}, {} million elements\n", survey.gpus[0].name, millions));
  runtime::exchange_accelerator(runtime::open_gpu(0));
  measure(blocks * 65536);
  return 0;
}

}  // namespace
}  // namespace lockstep::perf

int main(int argc, char** argv) try { return lockstep::perf::run(argc, argv); } catch (const std::exception& error) {
  lockstep::core::print(std::string{"kernel_bench: "} + error.what() + "\n");
  return 3;
}
