// The parts of script_lint, one for each thing that is looked at.
// Invariant: each adds what it finds; none looks at what another has added.
// Used by script_lint.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "site/request.hpp"
#include "site/script_lint.hpp"

namespace lockstep::site {

inline constexpr const char* refused = "the job is refused";

/// A variable that the shell fills in.
struct Read {
  std::string_view name;
  const Command& command;
  bool has_default;  ///< ${NAME:-x}
  bool is_asked;     ///< [ -z "$NAME" ] and its like: whether it is set
};

struct Look {
  const JobScript& script;
  const Site& site;
  const Request& request;
  const FileExists& exists;
  std::vector<Finding>& findings;
  std::vector<Read> reads{};  ///< in the order of the commands
  mutable int n_searches = 0;

  void add(Severity severity, int line, std::string what, std::string why = "", std::string fix = "") const;
  void error(int line, auto... text) const { add(Severity::error, line, std::move(text)...); }
  void warning(int line, auto... text) const { add(Severity::warning, line, std::move(text)...); }
  void note(int line, auto... text) const { add(Severity::note, line, std::move(text)...); }
  /// What an unknown name may be meant for is looked for so often only: no text takes long.
  [[nodiscard]] bool may_search() const { return ++n_searches <= 200; }
  [[nodiscard]] bool is_directive(int line) const;
  /// Whether this line has a character that looks like one of ASCII, which is told instead of what comes of it.
  [[nodiscard]] bool has_lookalike(int line) const;
  [[nodiscard]] bool is_pbs() const noexcept { return script.system == BatchSystem::pbs; }
  /// Returns the request for nodes of the first kind; an empty one if there is none.
  [[nodiscard]] Chunk first_chunk() const { return request.chunks.empty() ? Chunk{} : request.chunks.front(); }
  /// The number of nodes of the job; the largest that it allows if it gives a range; nothing if it does not say.
  [[nodiscard]] std::optional<long> n_nodes() const;
};

/// Directives by themselves: form, places, placeholders, those that a job must have.
void check_directives(const Look& look);
/// Options, by their table: names, values, those that do not go together; of directives and of srun.
void check_options(const Look& look);
/// The resources of PBS: -l NAME=VALUE, -l select=[N:]NAME=VALUE[:...][+...], -l place=...
void check_resources(const Look& look);
/// Against the nodes and limits of the site.
void check_limits(const Look& look);
/// How ranks are started.
void check_launches(const Look& look);
/// What runs once a node, once a rank or on the first node alone, and how ranks of several nodes find each other.
void check_nodes(const Look& look);
/// Our own programs, as the script calls them: behind a launcher, or alone.
void check_programs(const Look& look);
/// Signals before a time limit, the traps that catch them, what they reach, and going back into the queue.
void check_signals(const Look& look);
/// What the shell of the script fills in: before ranks are there, and where nothing has set it.
void check_expansions(const Look& look);
/// Variables and commands.
void check_commands(const Look& look);

/// The ranks of `launch`: those that it says, or those of the job where the launcher takes them from there.
[[nodiscard]] std::optional<long> ranks_of(const Launch& launch, const Look& look);
/// A port that each job on a node would take.
void warn_of_port(int line, long port, const Look& look);
/// What words of `command` read after $ and ${.
[[nodiscard]] std::vector<Read> reads_of(const Command& command);

}  // namespace lockstep::site
