#include "core/instruction_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/ascii.hpp"
#include "core/flags.hpp"

namespace lockstep::core {
namespace {

/// The variables in oneDNN's order: the second is used if the first is not set or empty.
constexpr std::array variables{"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};

struct Limit {
  std::string_view name;
  InstructionSets allowed;
};

constexpr InstructionSets up_to_avx2{.avx2 = true};
constexpr InstructionSets up_to_avx512{.avx2 = true, .avx512 = true};
constexpr InstructionSets all{.avx2 = true, .avx512 = true, .avx512_vbmi = true};

/// The limits of oneDNN 2.6 to 3.7, except Xeon Phi's and AVX2_VNNI_2: 2.6 does not know that one and would ignore the
/// limit. Processors after those with AVX512_CORE_BF16 have permutations of bytes.
constexpr std::array<Limit, 17> limits{{{"SSE41", {}},
                                        {"AVX", {}},
                                        {"AVX2", up_to_avx2},
                                        {"AVX2_VNNI", up_to_avx2},
                                        {"AVX512_CORE", up_to_avx512},
                                        {"AVX512_CORE_VNNI", up_to_avx512},
                                        {"AVX512_CORE_BF16", up_to_avx512},
                                        {"AVX512_CORE_FP16", all},
                                        {"AVX512_CORE_AMX", all},
                                        {"AVX512_CORE_AMX_FP16", all},
                                        {"AVX10_1_512", all},
                                        {"AVX10_1_512_AMX", all},
                                        {"AVX10_1_512_AMX_FP16", all},
                                        {"AVX10_2_512", all},
                                        {"AVX10_2_512_AMX_2", all},
                                        {"ALL", all},
                                        {"DEFAULT", all}}};

const Limit* find_limit(std::string_view name) noexcept {
  const auto is_it = [name](const Limit& limit) { return equal_ignoring_case(limit.name, name); };
  const auto* const found = std::find_if(limits.begin(), limits.end(), is_it);
  return found != limits.end() ? found : nullptr;
}

struct Variable {
  const char* name = "";
  const char* value = "";
};

/// The variable that is set and not empty.
Variable find_variable() noexcept {
  for (const char* const name : variables)
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') return {name, value};
  return {};
}

InstructionSets find_sets() noexcept {
  const InstructionSets sets = processor_sets();
  const std::string_view limit = find_variable().value;
  return limit.empty() ? sets : limited(sets, limit).value_or(sets);
}

}  // namespace

InstructionSets instruction_sets() noexcept {
  static const InstructionSets sets = find_sets();
  return sets;
}

std::string_view widest(const InstructionSets& sets) noexcept {
  return sets.avx512 ? "avx512" : sets.avx2 ? "avx2" : "plain";
}

std::optional<InstructionSets> limited(const InstructionSets& sets, std::string_view limit) noexcept {
  const Limit* const found = find_limit(limit);
  if (found == nullptr) return std::nullopt;
  return InstructionSets{.avx2 = sets.avx2 && found->allowed.avx2,
                         .avx512 = sets.avx512 && found->allowed.avx512,
                         .avx512_vbmi = sets.avx512_vbmi && found->allowed.avx512_vbmi};
}

std::string instruction_limit_warning() {
  const Variable variable = find_variable();
  const std::string_view value = variable.value;
  if (value.empty() || equal_ignoring_case(value, "ALL") || equal_ignoring_case(value, "DEFAULT")) return {};
  return fmt::format("{}={}: newer instructions are not used; Lockstep's own loops: {}", variable.name, value,
                     widest(instruction_sets()));
}

void check_instruction_limit() {
  const Variable variable = find_variable();
  if (*variable.value == '\0' || find_limit(variable.value) != nullptr) return;
  std::vector<std::string> names;
  for (const Limit& limit : limits) names.emplace_back(limit.name);
  fail_unknown("instruction set", variable.value, variable.name, names);
}

}  // namespace lockstep::core
