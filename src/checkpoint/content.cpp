#include "checkpoint/content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

namespace lockstep::checkpoint {
namespace {

using core::JsonField;
using core::JsonKind;
using core::JsonRule;
using Content = nlohmann::ordered_json;

constexpr std::uint64_t most_steps = std::uint64_t{1} << 53;  // sums of two are whole numbers, also as float64
constexpr std::uint64_t most_ranks = 100'000'000;

/// Bytes of float64, and a digest of those before.
bool are_losses(std::string_view text) {
  return text.size() % (2 * sizeof(double)) == 0 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_digest_or_nothing(std::string_view text) { return text.empty() || core::is_digest(text); }

bool is_line(std::string_view text) {
  return text.find_first_of(std::string_view{"\n\0", 2}) == std::string_view::npos;
}

constexpr JsonRule step_count{.kind = JsonKind::whole, .most = most_steps};
constexpr JsonRule text_line{.kind = JsonKind::text, .most = 4096, .fits = is_line, .expected = "a line of text"};

// Losses have no range: what is rounded may be a little below 0.
constexpr JsonRule rate{.kind = JsonKind::number, .low = 0};
constexpr JsonRule scale_value{.kind = JsonKind::number,
                               .low = std::numeric_limits<float>::denorm_min(),
                               .high = std::numeric_limits<float>::max(),
                               .expected = "a number above 0 in the range of float32"};
constexpr JsonRule scale_count{.kind = JsonKind::whole, .most = std::numeric_limits<std::uint32_t>::max()};

constexpr std::array epoch_fields{JsonField{"loss", core::json_number}, JsonField{"samples", step_count},
                                  JsonField{"top1", step_count}, JsonField{"steps", step_count}};
constexpr std::array best_fields{JsonField{"step", step_count}, JsonField{"samples", step_count},
                                 JsonField{"top1", step_count}, JsonField{"loss", core::json_number}};
constexpr std::array scale_fields{JsonField{"value", scale_value}, JsonField{"good_steps", scale_count},
                                  JsonField{"updates", step_count}};

// `best` and `loss_scale` are missing in what older versions have written.
constexpr std::array state_fields{
    JsonField{"epoch", step_count},
    JsonField{"step", step_count},
    JsonField{"samples_seen", step_count},
    JsonField{"learning_rate", rate},
    JsonField{"ledger", core::json_whole},
    JsonField{"of_epoch", {.kind = JsonKind::object, .fields = epoch_fields}},
    JsonField{"epoch_loss", {.kind = JsonKind::number, .may_be_null = true}},
    JsonField{"best", {.kind = JsonKind::object, .may_be_null = true, .fields = best_fields}, false},
    JsonField{"loss_scale", {.kind = JsonKind::object, .may_be_null = true, .fields = scale_fields}, false},
    JsonField{"losses",
              {.kind = JsonKind::text,
               .most = most_losses * 2 * sizeof(double),
               .fits = are_losses,
               .expected = "at most 4096 losses of 16 hexadecimal digits each"}}};
static_assert(most_losses == 4096);
constexpr JsonRule state_rule{.kind = JsonKind::object, .fields = state_fields};

constexpr std::array sighting_fields{JsonField{"rank", {.kind = JsonKind::whole, .most = most_ranks - 1}},
                                     JsonField{"host", text_line}, JsonField{"where", text_line},
                                     JsonField{"samples", {.kind = JsonKind::list, .each = &core::json_whole}}};
constexpr JsonRule sighting{.kind = JsonKind::object, .fields = sighting_fields};
constexpr std::array bad_step_fields{JsonField{"learning_rate", rate},
                                     JsonField{"seen", {.kind = JsonKind::list, .each = &sighting}}};
constexpr JsonRule bad_step_rule{.kind = JsonKind::object, .fields = bad_step_fields};

constexpr std::array recipe_fields{JsonField{"model", core::json_text, false}};
constexpr std::array content_fields{
    JsonField{"recipe_name", {.kind = JsonKind::text, .least = 1, .most = 4096}},
    JsonField{"recipe", {.kind = JsonKind::object, .fields = recipe_fields}},
    JsonField{"set_digest",
              {.kind = JsonKind::text, .fits = is_digest_or_nothing, .expected = "a digest, or an empty text"}},
    JsonField{"epoch_steps", {.kind = JsonKind::whole, .least = 1, .most = most_steps}},
    JsonField{"ranks", {.kind = JsonKind::whole, .least = 1, .most = most_ranks}},
    JsonField{"state", state_rule},
    JsonField{"bad_step", bad_step_rule, false}};

struct ContentReader {
  const std::string& where;
  const std::string& path;

  [[noreturn]] void refuse(std::string_view field, const std::string& says, std::string expected) const {
    core::refuse_field(where, fmt::format("{}.{}", path, field), says, std::move(expected), damaged_fix);
  }
  /// `value` is at most `most`, which is that of another field.
  void at_most(std::string_view field, std::uint64_t value, std::uint64_t most, std::string_view other) const {
    if (value > most)
      refuse(field, fmt::format("is {}", value), fmt::format("at most {}, the value of {}", most, other));
  }
};

std::uint64_t whole_at(const Content& json, const char* field) { return json.at(field).get<std::uint64_t>(); }

/// As the trainer keeps losses: 8 bytes for each, and 32 of their digest.
std::uint64_t n_loss_bytes(std::uint64_t n_steps) {
  constexpr std::uint64_t of_digest = 32, after_digest = most_losses - of_digest / sizeof(double);
  if (n_steps <= most_losses) return n_steps * sizeof(double);
  return of_digest + ((n_steps - most_losses - 1) % after_digest + 1) * sizeof(double);
}

/// Refuses losses and a ledger that do not fit the step of the state. The ledger of a checkpoint that is kept for a bad
/// step may be ahead of it, and is not checked.
void check_history(const ContentReader& reader, const Content& state, bool is_bad_step) {
  const std::uint64_t n_steps = whole_at(state, "step"), ledger = whole_at(state, "ledger");
  const std::uint64_t n_digits = state.at("losses").get_ref<const std::string&>().size();
  if (n_digits != 2 * n_loss_bytes(n_steps))
    reader.refuse("state.losses", fmt::format("has {} digits", n_digits),
                  fmt::format("{}, for the losses of {} steps", 2 * n_loss_bytes(n_steps), n_steps));
  if (!is_bad_step && ledger != 0 && whole_at(state.at("of_epoch"), "steps") == 0)
    reader.refuse("state.ledger", fmt::format("is {}", ledger), "0, as no step of the epoch is made");
}

/// A run's position is a number of whole epochs and some steps.
void check_place(const ContentReader& reader, const Content& content) {
  const Content &state = content.at("state"), &of_epoch = state.at("of_epoch");
  const std::uint64_t epoch = whole_at(state, "epoch"), of_all = whole_at(state, "step");
  const std::uint64_t in_epoch = whole_at(of_epoch, "steps"), each = whole_at(content, "epoch_steps");
  // The step that comes next is one of the epoch.
  const std::uint64_t most = content.contains("bad_step") ? each - 1 : each;
  if (in_epoch > most)
    reader.refuse("state.of_epoch.steps", fmt::format("is {}", in_epoch),
                  fmt::format("at most {}, as epoch_steps is {}", most, each));
  if (epoch > of_all / each || epoch * each + in_epoch != of_all)
    reader.refuse("state.step", fmt::format("is {}", of_all),
                  fmt::format("{} epochs of {} steps each, plus {} steps", epoch, each, in_epoch));
  check_history(reader, state, content.contains("bad_step"));
}

void check_sightings(const ContentReader& reader, const Content& content) {
  if (!content.contains("bad_step") || !content.contains("ranks")) return;
  const Content& seen = content.at("bad_step").at("seen");
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (const std::uint64_t rank = whole_at(seen[i], "rank"); rank >= whole_at(content, "ranks"))
      reader.refuse(fmt::format("bad_step.seen[{}].rank", i), fmt::format("is {}", rank),
                    fmt::format("one of {} ranks, counting from 0", whole_at(content, "ranks")));
}

bool is_recipe_value(const Content& value) {
  if (value.is_array()) return std::ranges::all_of(value, [](const Content& item) { return is_recipe_value(item); });
  return value.is_boolean() || value.is_number() || value.is_string();
}

/// As a recipe file can have it: it may become one again.
void check_recipe(const ContentReader& reader, const Content& recipe) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  for (const auto& item : recipe.items()) {
    if (item.key().empty() || item.key().find_first_not_of(letters) != std::string::npos)
      reader.refuse("recipe", fmt::format("has the key '{}'", item.key()), "keys of letters, digits, _ and -");
    if (!is_recipe_value(item.value()))
      reader.refuse("recipe." + item.key(), fmt::format("is {}", item.value().is_null() ? "null" : "an object"),
                    "a number, a text, true or false, or a list of these");
  }
}

}  // namespace

const JsonRule any_content{.kind = JsonKind::object, .may_lack_fields = true, .fields = content_fields};
const JsonRule training_content{.kind = JsonKind::object, .fields = content_fields};
const core::JsonDocument state_document{.what = "the state of a run", .rule = state_rule, .fix = damaged_fix};
const core::JsonDocument bad_step_document{
    .what = "the record of a step that was not finite", .rule = bad_step_rule, .fix = damaged_fix};

void check_state(const Content& state, const std::string& where, const std::string& path) {
  const ContentReader reader{where, path};
  const Content& of_epoch = state.at("of_epoch");
  const std::uint64_t of_all = whole_at(state, "step");
  reader.at_most("of_epoch.steps", whole_at(of_epoch, "steps"), of_all, "step");
  reader.at_most("of_epoch.samples", whole_at(of_epoch, "samples"), whole_at(state, "samples_seen"), "samples_seen");
  reader.at_most("of_epoch.top1", whole_at(of_epoch, "top1"), whole_at(of_epoch, "samples"), "of_epoch.samples");
  if (const auto best = state.find("best"); best != state.end() && !best->is_null()) {
    reader.at_most("best.step", whole_at(*best, "step"), of_all, "step");
    reader.at_most("best.top1", whole_at(*best, "top1"), whole_at(*best, "samples"), "best.samples");
  }
  const auto scale = state.find("loss_scale");
  if (scale == state.end() || scale->is_null()) return;
  reader.at_most("loss_scale.updates", whole_at(*scale, "updates"), of_all, "step");
  reader.at_most("loss_scale.good_steps", whole_at(*scale, "good_steps"), whole_at(*scale, "updates"), "updates");
}

void check_content(const Content& content, const std::string& where, const std::string& path) {
  const ContentReader reader{where, path};
  if (content.contains("recipe")) check_recipe(reader, content.at("recipe"));
  if (content.contains("state")) check_state(content.at("state"), where, path + ".state");
  if (content.contains("state") && content.contains("epoch_steps")) check_place(reader, content);
  check_sightings(reader, content);
}

}  // namespace lockstep::checkpoint
