#include "training/train/bad_step.hpp"

#include <nlohmann/json.hpp>

#include "checkpoint/content.hpp"
#include "core/json.hpp"

namespace lockstep::training {

using Json = nlohmann::ordered_json;

std::string to_json(const BadStep& bad) {
  Json seen = Json::array();
  for (const Sighting& one : bad.seen)
    seen.push_back({{"rank", one.rank}, {"host", one.host}, {"where", one.where}, {"samples", one.samples}});
  return Json{{"learning_rate", bad.learning_rate}, {"seen", seen}}.dump();
}

BadStep parse_bad_step(std::string_view text) {
  const Json json = core::parse_json<Json>(text, "the bad step of a checkpoint", checkpoint::bad_step_document);
  BadStep bad{.learning_rate = json.at("learning_rate")};
  for (const Json& one : json.at("seen"))
    bad.seen.push_back({.rank = one.at("rank"),
                        .host = one.at("host"),
                        .where = one.at("where"),
                        .samples = one.at("samples").get<std::vector<std::uint64_t>>()});
  return bad;
}

}  // namespace lockstep::training
