#include "site/shell_spans.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "site/text.hpp"

namespace lockstep::site {
namespace {

bool ends_word(char c) { return std::string_view{" \t\r\n;&|()<>"}.find(c) != std::string_view::npos; }

class Spans {
 public:
  Spans(std::string_view text, std::size_t begin, Open what, bool is_quoted) : text_{text}, at_{begin} {
    if (is_quoted) open_.push_back(Open::quotes);
    n_around_ = open_.size();
    open_.push_back(what);
  }

  std::optional<std::size_t> run() {
    while (at_ < text_.size()) {
      step(text_[at_++]);
      if (open_.size() == n_around_) return at_;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] char next(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void open(Open what, std::size_t n = 0) {
    open_.push_back(what);
    at_ += n;
  }
  void go_to(std::optional<std::size_t> end) { at_ = end.value_or(text_.size()); }
  /// Whether ' is a letter as others here.
  [[nodiscard]] bool is_in_quotes() const {
    const std::size_t n = open_.size();
    return open_[n - 1] == Open::quotes || (open_[n - 1] == Open::parameter && n > 1 && open_[n - 2] == Open::quotes);
  }

  void step(char c) {
    const Open inner = open_.back();
    if (c == '\\') {
      ++at_;
    } else if (c == '$') {
      step_expansion();
    } else if (c == '"') {
      inner == Open::quotes ? open_.pop_back() : open(Open::quotes);
    } else if (c == '`') {
      inner == Open::backticks ? open_.pop_back() : open(Open::backticks);
    } else if (c == '\'' && !is_in_quotes()) {
      at_ = std::min(text_.find('\'', at_), text_.size() - 1) + 1;
    } else if (c == '}' && inner == Open::parameter) {
      open_.pop_back();
    } else if (c == '(' && inner == Open::commands) {
      open(next() == '(' ? Open::arithmetic : Open::commands);
    } else if (c == '(' && inner == Open::arithmetic) {
      open(Open::arithmetic);
    } else if (c == ')' && (inner == Open::commands || inner == Open::arithmetic)) {
      open_.pop_back();
    } else if (inner == Open::commands) {
      step_command(c);
    }
  }

  void step_expansion() {
    if (next() == '\'' && !is_in_quotes()) return go_to(end_of_escaped(text_, at_ + 1));
    if (next() == '(') return open(next(1) == '(' ? Open::arithmetic : Open::commands, 1);
    if (next() == '{') return open(Open::parameter, 1);
  }

  void step_command(char c) {
    if (c == '#' && (at_ < 2 || ends_word(text_[at_ - 2]))) at_ = std::min(text_.find('\n', at_), text_.size());
    if (c == '<' && next() == '<') {
      if (next(1) == '<') return void(at_ += 2);
      HereWord word = read_here_word(text_, at_ + 1);
      at_ = word.after;
      here_documents_.push_back(std::move(word.end));
    }
    if (c != '\n') return;
    for (const std::string& end : std::exchange(here_documents_, {})) go_to(end_of_here_document(text_, at_, end));
  }

  std::string_view text_;
  std::size_t at_;
  std::vector<Open> open_{};
  std::size_t n_around_ = 0;
  std::vector<std::string> here_documents_{};
};

}  // namespace

std::optional<std::size_t> end_of(std::string_view text, std::size_t begin, Open what, bool is_quoted) {
  return Spans{text, begin, what, is_quoted}.run();
}

std::optional<std::size_t> end_of_escaped(std::string_view text, std::size_t begin) {
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == '\'') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return std::nullopt;
}

HereWord read_here_word(std::string_view text, std::size_t begin) {
  HereWord word{.end = {}, .after = begin};
  std::size_t& at = word.after;
  if (at < text.size() && text[at] == '-') ++at;
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  char quote = '\0';
  for (; at < text.size() && (quote != '\0' ? text[at] != '\n' : !ends_word(text[at])); ++at) {
    const char c = text[at];
    if (quote != '\0' ? c == quote : c == '\'' || c == '"')
      quote = quote != '\0' ? '\0' : c;
    else if (c != '\\' || quote == '\'')
      word.end += c;
    else if (at + 1 < text.size() && text[at + 1] != '\n')
      word.end += text[++at];
  }
  return word;
}

std::optional<std::size_t> end_of_here_document(std::string_view text, std::size_t begin, std::string_view end) {
  while (begin < text.size()) {
    const std::string_view line = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
    begin = std::min(begin + line.size() + 1, text.size());
    if (trim(line) == trim(end)) return begin;
  }
  return std::nullopt;
}

}  // namespace lockstep::site
