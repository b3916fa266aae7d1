// What a job asks for, in numbers, whatever the batch system.
// Invariant: pure; what is not said, or said in a way that is no number, is absent.
// Used by the parts of script_lint.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site/job_script.hpp"

namespace lockstep::site {

template <class Value>
struct Asked {
  Value value{};
  int line = 0;
};

template <class Value>
[[nodiscard]] Value value_or(const std::optional<Asked<Value>>& asked, Value otherwise) {
  return asked ? asked->value : otherwise;
}

/// Nodes of one kind; a job of Slurm has one, each chunk of a PBS select line is one.
struct Chunk {
  std::optional<Asked<long>> nodes{};
  std::optional<Asked<long>> ranks{};          ///< of a node
  std::optional<Asked<long>> cores_of_rank{};  ///< Slurm alone
  std::optional<Asked<long>> cores{};          ///< of a node; PBS, or ranks times cores_of_rank
  std::optional<Asked<long>> gpus{};           ///< of a node
  std::optional<Asked<std::string>> gpu{};     ///< their type
  std::optional<Asked<double>> memory_gb{};    ///< of a node
};

struct Request {
  std::vector<Chunk> chunks{};
  std::optional<Asked<long>> ranks{};  ///< of the job; absent if it does not say them exactly
  bool is_exclusive = false;           ///< has all cores of its nodes, however few it asks for
  std::optional<Asked<double>> minutes{};
  std::optional<Asked<std::string>> partition{};
  std::string constraint{};
};

[[nodiscard]] Request read_request(const JobScript& script);

/// A resource of `#PBS -l`: "walltime" and its value, "select" and its chunks; or of a chunk.
struct Resource {
  std::string name{};
  std::string value{};
  int line = 0;
  bool is_alone = false;  ///< without a =
};
/// "ncpus=4", "mem=4gb" of "ncpus=4:mem=4gb".
[[nodiscard]] std::vector<Resource> read_resources(std::string_view text, char separator, int line);
[[nodiscard]] std::vector<Resource> pbs_resources(const JobScript& script);

}  // namespace lockstep::site
