// write_example FOLDER: writes a run directory FOLDER/run and weights FOLDER/w.h5, for other programs to read.
// write_example --read F.h5: prints the model and the sums of the tensors `a.weight` [2, 3] and `b` [4] of such a file.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <numeric>

#include "checkpoint/weights.hpp"
#include "unit/training/run/example_run.hpp"

namespace {

using namespace lockstep::training;

const std::vector<lockstep::checkpoint::TensorSpec> specs{{"a.weight", {2, 3}}, {"b", {4}}};

void write(const std::string& folder) {
  RunDirectory run{folder + "/run", "toy"};
  run.start(example_info());
  run.interval_over(example_train());
  run.evaluated(example_evaluation());
  run.ended(example_final());
  const auto fill = [](std::size_t i, std::span<float> values) {
    std::iota(values.begin(), values.end(), 10.0f * static_cast<float>(i));
  };
  lockstep::checkpoint::save_weights(folder + "/w.h5", {.model = "example", .epoch = 2, .samples_seen = 128}, specs,
                                     fill, "--save-weights");
}

void read(const std::string& path) {
  const auto take = [](std::size_t i, std::span<const float> values) {
    fmt::print("{} {}\n", specs[i].name, std::accumulate(values.begin(), values.end(), 0.0));
  };
  const lockstep::checkpoint::WeightsInfo info = lockstep::checkpoint::load_weights(
      lockstep::runtime::Communicator::alone(), path, "example", specs, take, "--init-from");
  fmt::print("model '{}'\n", info.model);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  try {
    if (arguments.size() == 2 && arguments[0] == "--read")
      read(arguments[1]);
    else
      write(arguments.at(0));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
