#include "training/train/state.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "checkpoint/content.hpp"
#include "core/json.hpp"
#include "io/digest.hpp"

namespace lockstep::training {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here; doubles come back to the bit

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string from_hex(std::string_view text) {
  const auto digit = [](char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return bytes;
}

Json json_of(const std::optional<BestEvaluation>& best) {
  if (!best) return {};
  return {{"step", best->n_steps}, {"samples", best->n_samples}, {"top1", best->n_top1}, {"loss", best->loss}};
}

Json json_of(const std::optional<optim::LossScale>& scale) {
  if (!scale) return {};
  return {{"value", scale->value}, {"good_steps", scale->n_good}, {"updates", scale->n_updates}};
}

}  // namespace

void RunState::add_loss(double loss) {
  constexpr std::size_t most_bytes = checkpoint::most_losses * sizeof loss;
  if (losses.size() >= most_bytes) losses = digest_of_losses();
  losses.append(reinterpret_cast<const char*>(&loss), sizeof loss);
}

std::string RunState::digest_of_losses() const { return io::digest_of(std::as_bytes(std::span{losses})); }

void RunState::note_evaluation(const EvaluationRecord& evaluated) noexcept {
  const bool is_first = !best || best->n_samples != evaluated.n_samples;
  const bool is_better =
      is_first || evaluated.n_top1 > best->n_top1 || (evaluated.n_top1 == best->n_top1 && evaluated.loss < best->loss);
  if (is_better && std::isfinite(evaluated.loss))
    best = {n_steps, evaluated.n_samples, evaluated.n_top1, evaluated.loss};
}

std::string to_json(const RunState& state) {
  return Json{{"epoch", state.epoch},
              {"step", state.n_steps},
              {"samples_seen", state.samples_seen},
              {"learning_rate", state.learning_rate},
              {"ledger", state.ledger},
              {"of_epoch",
               {{"loss", state.of_epoch.loss},
                {"samples", state.of_epoch.n_samples},
                {"top1", state.of_epoch.n_top1},
                {"steps", state.of_epoch.n_steps}}},
              {"epoch_loss", std::isnan(state.epoch_loss) ? Json{} : Json(state.epoch_loss)},
              {"best", json_of(state.best)},
              {"loss_scale", json_of(state.loss_scale)},
              {"losses", to_hex(state.losses)}}
      .dump();
}

RunState parse_run_state(std::string_view text) {
  const std::string where = "the state of a checkpoint";
  const Json json = core::parse_json<Json>(text, where, checkpoint::state_document);
  checkpoint::check_state(json, where, "state");
  RunState state{.epoch = json.at("epoch"),
                 .n_steps = json.at("step"),
                 .samples_seen = json.at("samples_seen"),
                 .learning_rate = json.at("learning_rate"),
                 .n_agreed = json.at("step"),
                 .ledger = json.at("ledger")};
  const Json& epoch = json.at("of_epoch");
  state.of_epoch = {.loss = epoch.at("loss"),
                    .n_samples = epoch.at("samples"),
                    .n_top1 = epoch.at("top1"),
                    .n_steps = epoch.at("steps")};
  if (!json.at("epoch_loss").is_null()) state.epoch_loss = json.at("epoch_loss");
  if (const auto best = json.find("best");
      best != json.end() && !best->is_null())  // older ones do not know it, nor the next
    state.best = {.n_steps = best->at("step"),
                  .n_samples = best->at("samples"),
                  .n_top1 = best->at("top1"),
                  .loss = best->at("loss")};
  if (const auto scale = json.find("loss_scale"); scale != json.end() && !scale->is_null())
    state.loss_scale = {
        .value = scale->at("value"), .n_good = scale->at("good_steps"), .n_updates = scale->at("updates")};
  state.losses = from_hex(json.at("losses").get<std::string>());
  return state;
}

}  // namespace lockstep::training
