// The parsed command line, checked as far as one process can check it.
// Invariant: pure, makes no MPI call; the same arguments give the same Options or the same error on every rank.
// Used by main() and, read-only, by every part of the benchmark.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective.hpp"
#include "comm/device_plan.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/flags.hpp"
#include "core/units.hpp"
#include "runtime/fault.hpp"
#include "runtime/gpu_choice.hpp"

namespace lockstep::reduce_all {

/// Enumerators equal the words of the command line.
enum class Sync { barrier, none };
enum class BufferMode { hot, dirty, cold };
[[nodiscard]] std::string_view name(Sync sync) noexcept;
[[nodiscard]] std::string_view name(BufferMode mode) noexcept;

/// The task of the program; the last three need no MPI.
enum class Task { measure, compare, demo, help, version, list };

/// Fields are named like the flags, with their defaults.
struct Options {
  Task task = Task::measure;

  core::Bytes min_bytes{8};
  core::Bytes max_bytes{std::uint64_t{64} << 20};
  double step_factor = 2;
  std::optional<core::Bytes> step_bytes;  ///< set: sizes grow by this instead of by the factor
  std::vector<core::DType> dtype{core::DType::float32};
  bool is_every_dtype = false;  ///< `-d all`: sizes are rounded up to elements instead of refused
  std::vector<comm::ReduceOp> op{comm::ReduceOp::sum};
  comm::Collective collective = comm::Collective::all_reduce;
  std::vector<std::string> algorithm;  ///< empty: all that apply
  bool in_place = false;

  int iterations = 0;  ///< samples per row; 0: as many as fit the time per row
  int warmup_iterations = 5;
  int check = 4;  ///< checked iterations per row; 0: none
  BufferMode buffers = BufferMode::hot;
  Sync sync = Sync::barrier;
  std::uint64_t seed = 1;
  core::Seconds max_time{0};  ///< 0: no limit
  core::Seconds timeout{60};  ///< of the stall watchdog; 0: off

  int nproc = 0;         ///< 0: not given
  bool verbose = false;  ///< with nproc: prints the launcher's own messages, too
  int expect_ranks = 0;  ///< 0: not given
  runtime::DeviceRequest device{};
  bool graph = false;                                          ///< calls on devices are recorded and replayed
  comm::Registration registration = comm::Registration::none;  ///< --register: NCCL knows the vectors in advance
  int ranks_per_node = 0;
  std::string json;
  std::string csv;
  bool samples = false;
  int visits = 0;  ///< of every size after the table, for comparisons; 10 with json or baseline unless given
  bool verdict = false;
  std::vector<std::string> baseline;  ///< result files of launches before
  std::vector<std::string> now;       ///< those of later launches, compared instead of measuring
  double tolerance = 0.05;            ///< of the baseline's time
  std::string junit;
  std::shared_ptr<runtime::Drill> drill;  ///< of --inject; else null

  std::vector<std::string> arguments;  ///< as typed, without the program's name
};

/// Either the options and the calls that they request, in order, or the first error in them.
struct CommandLine {
  Options options;
  std::vector<comm::Call> calls;
  std::optional<core::Error> error;
};

/// `arguments` as typed, without the program's name. Does not throw for user input.
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& arguments);

/// Parsing fills `options`, which must outlive `flags`.
void declare(core::Flags& flags, Options& options);

}  // namespace lockstep::reduce_all
