#include "site/shell.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/characters.hpp"
#include "site/shell_spans.hpp"

namespace lockstep::site {
namespace {

constexpr int most_depth = 8;               ///< of commands within commands; what lies deeper is passed over
constexpr std::size_t most_words = 50'000;  ///< with those of commands within commands
constexpr std::size_t most_odd = 100;

constexpr std::array<std::string_view, 10> grammar_words{"if",    "then",  "elif", "else", "do",
                                                         "while", "until", "!",    "{",    "time"};

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class Reader {
 public:
  Reader(std::string_view text, int line, int depth, std::vector<Command>& commands, Unread& unread)
      : text_{text}, line_{line}, depth_{depth}, commands_{commands}, unread_{unread} {}

  void run() {
    while (at_ < text_.size() && unread_.full_line == 0) read_next();
    end_word();
    end_command();
  }

 private:
  struct Within {
    std::string_view text;
    int line;
  };

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void take(std::size_t n = 1) {
    for (; n > 0 && at_ < text_.size(); --n) {
      if (text_[at_] == '\n') ++line_;
      ++at_;
    }
  }
  void keep(std::size_t n = 1) {
    begin_word();
    word_ += text_.substr(at_, n);
    take(n);
  }
  /// As keep(), but nothing of it is filled in.
  void keep_literally(std::size_t n = 1) {
    keep(n);
    std::replace(word_.end() - static_cast<std::ptrdiff_t>(std::min(n, word_.size())), word_.end(), '$',
                 literal_dollar);
  }
  void begin_word() {
    if (has_word_) return;
    has_word_ = true;
    if (command_.words.empty()) command_.line = line_;
  }

  void read_next() {
    const char c = peek();
    if (c == '\\') return read_backslash();
    if (c == '\'') return read_single_quoted();
    if (c == '"') return read_double_quoted();
    if (c == '$' && peek(1) == '\'') return read_escaped();
    if (c == '$' && peek(1) == '"') return take();
    if (c == '$' || c == '`') return read_expansion(false);
    if (c == '#' && !has_word_) return take(to_end_of_line());
    if (c == '<' || c == '>') return read_redirection();
    if (c == '(' && has_word_ && word_.ends_with('=')) return read_list();
    if (c == '[' && has_word_ && is_subscribed()) return keep(length_of_subscript());
    if (c == '\n') return end_line();
    if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') return read_operator();
    if (is_space(c)) {
      end_word();
      return take();
    }
    const bool is_odd = static_cast<unsigned char>(c) >= 0x80 && unread_.odd.size() < most_odd;
    if (const auto odd = is_odd ? core::first_character(text_.substr(at_)) : std::nullopt)
      unread_.odd.push_back({line_, odd->code});
    keep();
  }

  [[nodiscard]] std::size_t to_end_of_line() const { return std::min(text_.find('\n', at_), text_.size()) - at_; }

  void read_backslash() {
    if (peek(1) == '\n') return take(2);
    const std::size_t past_blanks = text_.find_first_not_of(" \t\r", at_ + 1);
    const bool ends_line = past_blanks != text_.npos && text_[past_blanks] == '\n' && is_blank(peek(1));
    if (ends_line && unread_.blank_line == 0) unread_.blank_line = line_;
    take();
    if (at_ < text_.size()) keep_literally();
  }

  void note_open(int line) {
    if (depth_ == 0 && (unread_.open_line == 0 || unread_.open_line > line)) unread_.open_line = line;
  }

  /// Characters from `at_` to `end`, or to the end of the text where what is open never closes.
  std::size_t length_to(std::optional<std::size_t> end) {
    if (!end) note_open(line_);
    return end.value_or(text_.size()) - at_;
  }

  void read_single_quoted() {
    begin_word();
    const std::size_t end = text_.find('\'', at_ + 1);
    const std::size_t n = length_to(end == text_.npos ? std::nullopt : std::optional{end});
    take();
    keep_literally(n - 1);
    take();
  }

  /// $'...', in which backslashes escape.
  void read_escaped() {
    begin_word();
    const std::size_t end = at_ + length_to(end_of_escaped(text_, at_ + 2));
    take(2);
    while (at_ + 1 < end) {
      if (peek() == '\\') take();
      keep_literally();
    }
    take();
  }

  void read_double_quoted() {
    begin_word();
    const int first = line_;
    take();
    while (at_ < text_.size() && peek() != '"') {
      if (peek() == '\\' && (peek(1) == '\n')) {
        take(2);
      } else if (peek() == '\\') {
        take();
        keep_literally();
      } else if (peek() == '$' || peek() == '`') {
        read_expansion(true);
      } else {
        keep();
      }
    }
    if (at_ >= text_.size()) note_open(first);
    take();
  }

  /// $NAME, ${...}, $(...), $((...)) or `...`, kept as it is written; commands in it are read later.
  void read_expansion(bool is_quoted) {
    const char next = peek(1);
    if (peek() == '`') {
      const std::size_t n = length_to(end_of(text_, at_ + 1, Open::backticks, is_quoted));
      if (n >= 2) within_.push_back({text_.substr(at_ + 1, n - 2), line_});
      keep(n);
    } else if (next == '(' || next == '{') {
      const Open what = next == '{' ? Open::parameter : peek(2) == '(' ? Open::arithmetic : Open::commands;
      const std::size_t n = length_to(end_of(text_, at_ + 2, what, is_quoted));
      if (what == Open::commands && n >= 3) within_.push_back({text_.substr(at_ + 2, n - 3), line_});
      keep(n);
    } else {
      keep();
    }
  }

  /// Whether a [ here opens $[arithmetic] or the subscript of NAME[...], in which << is no here-document.
  [[nodiscard]] bool is_subscribed() const {
    return word_.ends_with('$') || assigned_name(word_).size() == word_.size();
  }
  [[nodiscard]] std::size_t length_of_subscript() const {
    const std::string_view line = text_.substr(at_, to_end_of_line());
    return std::min(line.find(']'), line.size() - 1) + 1;
  }

  /// NAME=(a b): one word, with its parentheses, without the quotes in it.
  void read_list() {
    const std::size_t n = length_to(end_of(text_, at_ + 1, Open::commands, false));
    std::vector<Command> items;
    if (depth_ < most_depth) Reader{text_.substr(at_ + 1, n >= 2 ? n - 2 : 0), line_, most_depth, items, unread_}.run();
    std::string list;
    for (const Command& one : items)
      for (const std::string& item : one.words) list += (list.empty() ? "" : " ") + item;
    word_ += "(" + list + ")";
    take(n);
  }

  void read_redirection() {
    const bool is_descriptor = has_word_ && word_.find_first_not_of("0123456789") == word_.npos;
    if (is_descriptor) word_.clear();
    has_word_ = has_word_ && !is_descriptor;
    end_word();
    if (peek() == '<' && peek(1) == '<' && peek(2) != '<') return note_here_document();
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|') take();
    skips_word_ = true;
  }

  void note_here_document() {
    HereWord word = read_here_word(text_, at_ + 2);
    take(word.after - at_);
    here_documents_.push_back(std::move(word.end));
  }

  void end_line() {
    end_word();
    const std::size_t n_before = commands_.size();
    end_command();
    list_begin_ = commands_.size();
    take();
    for (const std::string& end : std::exchange(here_documents_, {})) {
      const auto after = end_of_here_document(text_, at_, end);
      const int first = line_;
      take(after.value_or(text_.size()) - at_);
      mark_here_text(first, after ? line_ : line_ + 1);
      if (!after && depth_ == 0 && n_before < commands_.size()) commands_[n_before].is_endless = true;
    }
  }

  /// Lines from `first` to before `end`.
  void mark_here_text(int first, int end) {
    auto& marks = unread_.is_here_text;
    marks.resize(std::max(marks.size(), static_cast<std::size_t>(end)));
    std::fill(marks.begin() + first, marks.begin() + end, true);
  }

  void read_operator() {
    if (peek() == '(' && peek(1) == '(' && !has_word_)
      return take(length_to(end_of(text_, at_ + 1, Open::arithmetic, false)));
    if (peek() == '&' && peek(1) == '>') return read_redirection();
    const char c = peek(), before = at_ > 0 ? text_[at_ - 1] : '\0';
    end_word();
    end_command();
    if (c == '(') open_group('(');
    if (c == ')') close_group('(');
    const bool is_background = c == '&' && peek(1) != '&' && before != '&' && before != '|';
    for (std::size_t i = list_begin_; i < commands_.size() && is_background; ++i) commands_[i].is_background = true;
    if (is_background || c == ';') list_begin_ = commands_.size();
    take();
  }

  /// A list within is one command of the list around it.
  void open_group(char kind) { groups_.push_back({kind, std::exchange(list_begin_, commands_.size())}); }
  void close_group(char kind) {
    if (groups_.empty() || groups_.back().kind != kind) return;  // as the ) of a pattern of case
    list_begin_ = groups_.back().list_begin;
    groups_.pop_back();
  }

  void end_word() {
    if (!has_word_) return;
    has_word_ = false;
    std::string word = std::exchange(word_, {});
    if (std::exchange(skips_word_, false)) return;
    const bool opens_function = word == "{" && command_.words.size() == 2 && command_.words[0] == "function";
    if (opens_function) end_command();
    const bool is_first = command_.words.empty();
    if (is_first && word == "{") open_group('{');
    if (is_first && word == "{") ++brace_depth_;
    if (is_first && word == "}") {
      brace_depth_ = std::max(0, brace_depth_ - 1);
      return close_group('{');
    }
    if (is_first && std::ranges::find(grammar_words, word) != grammar_words.end()) {
      command_.is_condition |= word == "if" || word == "elif";
      command_.is_loop |= word == "while" || word == "until";
      if (word == "if" || word == "while" || word == "until") open_group('b');
      return;
    }
    command_.words.push_back(std::move(word));
    if (++unread_.n_words > most_words && unread_.full_line == 0) unread_.full_line = line_;
  }

  void end_command() {
    skips_word_ = false;
    Command command = std::exchange(command_, {});
    const auto within = std::exchange(within_, {});
    if (!command.words.empty()) {
      const std::string first = command.words.front();
      command.is_in_braces = brace_depth_ > 0;
      command.is_condition |= first == "[" || first == "[[" || first == "test";
      commands_.push_back(std::move(command));
      if (first == "for" || first == "select" || first == "case") open_group('b');
      if (first == "done" || first == "fi" || first == "esac") close_group('b');
    }
    for (const Within& one : within)
      if (depth_ < most_depth) Reader{one.text, one.line, depth_ + 1, commands_, unread_}.run();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
  int depth_;
  std::vector<Command>& commands_;
  Unread& unread_;
  Command command_{};
  std::string word_{};
  bool has_word_ = false;
  int brace_depth_ = 0;
  struct Group {
    char kind;
    std::size_t list_begin;
  };
  std::vector<Group> groups_{};
  std::size_t list_begin_ = commands_.size();  ///< the first command of the list that goes on
  bool skips_word_ = false;                    ///< the next word is the target of a redirection
  std::vector<Within> within_{};
  std::vector<std::string> here_documents_{};
};

}  // namespace

std::vector<Command> read_commands(std::string_view text, Unread* unread) {
  std::vector<Command> commands;
  Unread ignored;
  Reader{text, 1, 0, commands, unread != nullptr ? *unread : ignored}.run();
  return commands;
}

std::string_view assigned_name(std::string_view word) noexcept {
  std::size_t n = 0;
  while (n < word.size() && is_name_letter(word[n])) ++n;
  if (n == 0 || (word[0] >= '0' && word[0] <= '9')) return {};
  return word.substr(0, n);
}

}  // namespace lockstep::site
