// Forms of values: of options and resources of batch systems, and of environment variables.
// Invariant: pure; what a form does not know for certain passes.
// Used by the tables of options and of variables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

/// Whether a form has this name. option_table.txt says what each form takes.
[[nodiscard]] bool is_form(std::string_view name);

/// What a value of a form should have been; empty if `value` can be one.
[[nodiscard]] std::string expected_of(std::string_view form, std::string_view words, std::string_view value);

/// "1-12:30", "48:00:00", "30:00" or "90" of Slurm as minutes; nothing if it is no time.
[[nodiscard]] std::optional<double> slurm_minutes(std::string_view text);
/// "12:00:00", "30:00" or seconds of PBS.
[[nodiscard]] std::optional<double> pbs_minutes(std::string_view text);
/// "208G", "1000gb", "4096" (MB) of Slurm as GB; nothing if it is no size.
[[nodiscard]] std::optional<double> slurm_gb(std::string_view text);
/// "100gb", "4096" (bytes), "10mw" (words of 8 bytes) of PBS.
[[nodiscard]] std::optional<double> pbs_gb(std::string_view text);

struct Gres {
  std::string name{};
  std::string type{};
  std::optional<long> count{};  ///< 1 if none is written; nothing if it is no number
};
/// Reads the value of --gres, as gpu:a100:4: one Gres for each part between commas.
[[nodiscard]] std::vector<Gres> read_gres(std::string_view text);

/// Returns the greatest index of "0-15", "1,3,5-7" or "0-15:4%2"; nothing if it is not an array.
[[nodiscard]] std::optional<long> greatest_index(std::string_view array);

/// "USR1" of "SIGUSR1", "usr1" and "10"; empty if it is no signal.
[[nodiscard]] std::string_view signal_name(std::string_view text);
/// What "B:USR1@300" asks for.
struct SignalAsked {
  std::string_view name{};
  bool is_to_shell = false;
  long seconds = 60;  ///< before the end
};
[[nodiscard]] std::optional<SignalAsked> read_signal(std::string_view text);

/// A whole number of things that a job asks for; nothing for one so large that it would only overflow.
[[nodiscard]] std::optional<long> count_in(std::string_view text);

}  // namespace lockstep::site
