#include "training/doctor/facts.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json.hpp"

namespace lockstep::training::doctor {
namespace {

using core::JsonKind;
using core::JsonRule;

/// The table of a struct.
template <class Struct>
struct FieldsOf;
template <class Type>
constexpr JsonRule fact_rule{.kind = JsonKind::object, .may_lack_fields = true, .fields = FieldsOf<Type>::table};
/// Half the range: its ends are float64 too.
template <class Type>
constexpr JsonRule integer_rule{.kind = JsonKind::integer,
                                .low = static_cast<double>(std::numeric_limits<Type>::min() / 2),
                                .high = static_cast<double>(std::numeric_limits<Type>::max() / 2)};
template <>
constexpr JsonRule fact_rule<std::string> = core::json_text;
template <>
constexpr JsonRule fact_rule<bool> = core::json_boolean;
template <>
constexpr JsonRule fact_rule<double> = core::json_number;
template <>
constexpr JsonRule fact_rule<std::uint64_t> = core::json_whole;
template <>
constexpr JsonRule fact_rule<int> = integer_rule<int>;
template <>
constexpr JsonRule fact_rule<std::int64_t> = integer_rule<std::int64_t>;
template <class Item>
constexpr JsonRule fact_rule<std::vector<Item>>{.kind = JsonKind::list, .each = &fact_rule<Item>};
template <>
constexpr JsonRule fact_rule<std::map<std::string, std::string>>{.kind = JsonKind::object, .each = &core::json_text};

}  // namespace

// One list of members for what is written, what is read, and the table of fields.
#define LOCKSTEP_FACT(member) core::JsonField{#member, fact_rule<decltype(Here::member)>},
#define LOCKSTEP_FACTS(Type, ...)                                                                             \
  NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Type, __VA_ARGS__)                                          \
  namespace {                                                                                                 \
  template <>                                                                                                 \
  struct FieldsOf<Type> {                                                                                     \
    using Here = Type;                                                                                        \
    static constexpr std::array table{NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(LOCKSTEP_FACT, __VA_ARGS__))}; \
  };                                                                                                          \
  }

LOCKSTEP_FACTS(Port, name, kind, is_active, gbps)
LOCKSTEP_FACTS(Library, name, path, bytes, modified)
LOCKSTEP_FACTS(SeenGpu, name, uuid, memory, has_bf16)
LOCKSTEP_FACTS(GpuFacts, seen, obstacle, fix, driver, toolkit, cudnn, nccl, nccl_obstacle, nccl_fix)
LOCKSTEP_FACTS(Limits, locked_memory, open_files, stack, core_file, address_space_left, data_left)
LOCKSTEP_FACTS(SetFacts, complaint, fix, n_samples, n_files, n_looked, x, classes, file_system, n_read, seconds,
               cached_percent, unread)
LOCKSTEP_FACTS(FolderFacts, complaint, path, file_system, is_network, is_in_home, size, free, flock, fcntl, meeting)
LOCKSTEP_FACTS(Obstacle, what, fix)
LOCKSTEP_FACTS(NodeFacts, kernel, cpu_model, n_cpus, n_numa, governors, huge_pages, numa_balancing, cpu_quota, memory,
               shm_size, shm_free, ports, gpus, data, val, checkpoints, launcher, obstacles, name, unresolved,
               n_resolved, clock_low, clock_high)
LOCKSTEP_FACTS(Facts, host, launcher, launched_rank, launched_ranks, slurm_tasks, pbs_lines, pbs_complaint, pmi,
               own_launcher, mpi_library, version, digest, libraries, variables, limits, gpus, temporary,
               missing_temporary, has_node, node)
#undef LOCKSTEP_FACTS
#undef LOCKSTEP_FACT

namespace {

constexpr core::JsonDocument facts_document{.what = "the facts of a rank", .rule = fact_rule<Facts>};

}  // namespace

std::string to_text(const Facts& facts) {
  return nlohmann::json(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Facts facts_from_text(std::string_view text) {
  nlohmann::json json;
  const auto complaint =
      core::complaint_of([&] { json = core::parse_json<nlohmann::json>(text, "it", facts_document); });
  if (complaint)
    core::fail_system(fmt::format("cannot read the facts of a rank: {}; expected {}", complaint->problem().what,
                                  complaint->problem().expected));
  return json.get<Facts>();
}

}  // namespace lockstep::training::doctor
