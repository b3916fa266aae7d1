#include "site/shell.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "core/characters.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr int most_depth = 20;              ///< of quotes and brackets within one another
constexpr std::size_t most_words = 50'000;  ///< with those of commands within commands
constexpr std::size_t most_input = 200;     ///< characters of it that are kept

constexpr std::array<std::string_view, 10> grammar_words{"if",    "then",  "elif", "else", "do",
                                                         "while", "until", "!",    "{",    "time"};

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

struct HereDocument {
  std::string end;
  bool may_have_tabs;  ///< <<-: before `end`
};

/// Past the last line of the here-document whose first line begins at `begin`; nothing if it has none.
std::optional<std::size_t> end_of_here_document(std::string_view text, std::size_t begin,
                                                const HereDocument& document) {
  while (begin < text.size()) {
    std::string_view line = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
    begin = std::min(begin + line.size() + 1, text.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (document.may_have_tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
    if (line == document.end) return begin;
  }
  return std::nullopt;
}

/// Reads each character once, from the first to the last: a Reader within another reads what stands in brackets.
class Reader {
 public:
  Reader(std::string_view text, std::vector<Command>& commands, Unread& unread)
      : text_{text}, commands_{commands}, after_{commands}, unread_{unread} {}

  void run() {
    while (at_ < text_.size() && unread_.full_line == 0 && !is_at_end()) read_next();
    end_word();
    end_command();
  }

 private:
  /// Reads what has opened in `outer`, up to `end`, which is ) or `. Commands within `commands` go to `after`.
  Reader(const Reader& outer, char end, std::vector<Command>& commands, std::vector<Command>& after)
      : text_{outer.text_},
        at_{outer.at_},
        line_{outer.line_},
        depth_{outer.depth_},
        end_{end},
        commands_{commands},
        after_{after},
        unread_{outer.unread_} {}

  [[nodiscard]] bool is_at_end() const { return peek() == end_ && (end_ == '`' || (end_ == ')' && n_brackets_ == 0)); }
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
    word_ += text_.substr(std::min(at_, text_.size()), n);
    take(n);
  }
  /// As keep(), but nothing of it is filled in.
  void keep_literally(std::size_t n = 1) {
    const auto n_before = static_cast<std::ptrdiff_t>(word_.size());
    keep(n);
    std::replace(word_.begin() + n_before, word_.end(), '$', literal_dollar);
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
    if (c == '#' && !has_word_) return take(to_end_of_comment());
    if ((c == '<' || c == '>') && peek(1) == '(') return read_expansion(false);
    if (c == '<' || c == '>') return read_redirection();
    if (c == '(' && has_word_ && word_.ends_with('=')) return read_list();
    if (c == '[' && has_word_ && end_ == '\0' && is_subscribed()) return keep(length_of_subscript());
    if (c == '\n') return end_line();
    if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') return read_operator();
    if (is_space(c)) {
      end_word();
      return take();
    }
    const bool is_odd = static_cast<unsigned char>(c) >= 0x80 && unread_.odd.size() < Unread::most_odd;
    if (const auto odd = is_odd ? core::first_character(text_.substr(at_)) : std::nullopt)
      unread_.odd.push_back({line_, odd->code});
    keep();
  }

  [[nodiscard]] std::size_t to_end_of_line() const { return std::min(text_.find('\n', at_), text_.size()) - at_; }
  /// A ` ends what it has opened also where that is a comment.
  [[nodiscard]] std::size_t to_end_of_comment() const {
    return end_ == '`' ? std::min(text_.find_first_of("\n`", at_), text_.size()) - at_ : to_end_of_line();
  }

  void read_backslash() {
    if (peek(1) == '\n') return take(2);
    const std::size_t past_blanks = text_.find_first_not_of(" \t\r", at_ + 1);
    const bool ends_line = past_blanks != text_.npos && text_[past_blanks] == '\n' && is_blank(peek(1));
    if (ends_line && unread_.blank_line == 0) unread_.blank_line = line_;
    take();
    if (at_ < text_.size()) keep_literally();
  }

  /// What opens here with `n` characters: `read` reads up to the character that closes it.
  template <class Read>
  void read_open(std::size_t n, Read read) {
    begin_word();
    const int first = line_;
    if (depth_ == most_depth) {
      if (unread_.full_line == 0) unread_.full_line = line_;
      at_ = text_.size();
    }
    take(n);
    ++depth_;
    read();
    --depth_;
    const bool is_first = unread_.open_line == 0 || unread_.open_line > first;
    if (at_ >= text_.size() && unread_.full_line == 0 && is_first) unread_.open_line = first;
    take();
  }

  void read_single_quoted() {
    read_open(1, [this] { keep_literally(std::min(text_.find('\'', at_), text_.size()) - at_); });
  }

  /// $'...', in which backslashes escape.
  void read_escaped() {
    read_open(2, [this] {
      while (at_ < text_.size() && peek() != '\'') {
        if (peek() == '\\') take();
        keep_literally();
      }
    });
  }

  void read_double_quoted() {
    read_open(1, [this] {
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
    });
  }

  /// $NAME, ${...}, $(...), $((...)), <(...) or `...`, kept as it is written.
  void read_expansion(bool is_quoted) {
    if (peek() == '$' && peek(1) != '(' && peek(1) != '{') return keep();
    const std::size_t begin = at_, n_before = word_.size();
    if (peek() == '`')
      read_within(1, '`', within_);
    else if (peek(1) == '{')
      read_open(2, [&] { read_no_commands('}', '}', is_quoted); });
    else if (peek() == '$' && peek(2) == '(')
      read_open(2, [this] { read_no_commands('(', ')', false); });
    else
      read_within(2, ')', within_);
    word_.resize(n_before);
    word_ += text_.substr(begin, at_ - begin);
  }

  void read_within(std::size_t n, char end, std::vector<Command>& commands) {
    read_open(n, [&] {
      Reader inner{*this, end, commands, within_};
      inner.run();
      at_ = inner.at_;
      line_ = inner.line_;
    });
  }

  /// Up to `end`, but for the ends of what `open` opens. With `is_quoted` a ' is a letter as others.
  void read_no_commands(char open, char end, bool is_quoted) {
    for (int n_open = 0; at_ < text_.size() && !(peek() == end && n_open == 0);) {
      const char c = peek();
      if (c == '\\') {
        keep(2);
      } else if (c == '\'' && !is_quoted) {
        read_single_quoted();
      } else if (c == '"') {
        read_double_quoted();
      } else if (c == '$' && peek(1) == '\'' && !is_quoted) {
        read_escaped();
      } else if (c == '$' || c == '`') {
        read_expansion(false);
      } else {
        n_open += c == open ? 1 : c == end ? -1 : 0;
        keep();
      }
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
    std::vector<Command> items;
    read_within(1, ')', items);
    std::string list;
    for (const Command& one : items)
      for (const std::string& item : one.words) list += (list.empty() ? "" : " ") + item;
    word_ += "(" + list + ")";
  }

  void read_redirection() {
    const bool is_descriptor = has_word_ && word_.find_first_not_of("0123456789") == word_.npos;
    if (is_descriptor) word_.clear();
    has_word_ = has_word_ && !is_descriptor;
    end_word();
    const bool is_here = peek() == '<' && peek(1) == '<' && peek(2) != '<';
    next_ = is_here ? Word::end_of_here_document : peek() == '<' ? Word::input : Word::target;
    may_have_tabs_ = is_here && peek(2) == '-';
    if (is_here) return take(may_have_tabs_ ? 3 : 2);
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|') take();
  }

  void end_line() {
    end_word();
    const std::size_t n_before = commands_.size();
    end_command();
    list_begin_ = commands_.size();
    take();
    if (command_.input.empty()) line_begin_ = at_;
    for (const HereDocument& document : std::exchange(here_documents_, {})) {
      const auto after = end_of_here_document(text_, at_, document);
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
    if (peek() == '(' && peek(1) == '(' && !has_word_) {
      read_open(1, [this] { read_no_commands('(', ')', false); });
      word_.clear();
      has_word_ = false;
      return;
    }
    if (peek() == '&' && peek(1) == '>') return read_redirection();
    const char c = peek(), before = at_ > 0 ? text_[at_ - 1] : '\0';
    end_word();
    end_command();
    if (c == '|' && peek(1) != '|' && before != '|') {
      const std::size_t begin = std::max(line_begin_ + most_input, at_) - most_input;
      command_.input = text_.substr(begin, at_ - begin);
    }
    if (c == '(') open_group('(');
    if (c == ')') close_group('(');
    n_brackets_ += c == '(' ? 1 : c == ')' ? -1 : 0;
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
    const Word is = std::exchange(next_, Word::argument);
    if (is == Word::end_of_here_document) here_documents_.push_back({std::move(word), may_have_tabs_});
    if (is == Word::input) command_.input = word.substr(0, most_input);
    if (is != Word::argument) return;
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
    if (unread_.n_words > most_words) return;
    command_.words.push_back(std::move(word));
    if (++unread_.n_words > most_words && unread_.full_line == 0) unread_.full_line = line_;
  }

  void end_command() {
    next_ = Word::argument;
    Command command = std::exchange(command_, {});
    auto within = std::exchange(within_, {});
    if (!command.words.empty()) {
      const std::string first = command.words.front();
      command.is_in_braces = brace_depth_ > 0;
      command.is_condition |= first == "[" || first == "[[" || first == "test";
      commands_.push_back(std::move(command));
      if (first == "for" || first == "select" || first == "case") open_group('b');
      if (first == "done" || first == "fi" || first == "esac") close_group('b');
    } else {
      command_.input = std::move(command.input);  // | at the end of a line
    }
    std::ranges::move(within, std::back_inserter(after_));
  }

  struct Group {
    char kind;
    std::size_t list_begin;
  };
  enum class Word { argument, target, input, end_of_here_document };  ///< target: of a redirection

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;
  char end_ = '\0';
  std::vector<Command>& commands_;
  std::vector<Command>& after_;  ///< where commands within others go
  Unread& unread_;
  Command command_{};
  std::string word_{};
  bool has_word_ = false;
  Word next_ = Word::argument;
  int n_brackets_ = 0;
  int brace_depth_ = 0;
  std::vector<Group> groups_{};
  std::size_t list_begin_ = commands_.size();  ///< the first command of the list that goes on
  std::size_t line_begin_ = at_;               ///< a line that ends with | goes on
  std::vector<Command> within_{};
  bool may_have_tabs_ = false;  ///< of the here-document whose end word comes next
  std::vector<HereDocument> here_documents_{};
};

}  // namespace

std::vector<Command> read_commands(std::string_view text, Unread* unread) {
  std::vector<Command> commands;
  Unread ignored;
  Reader{text, commands, unread != nullptr ? *unread : ignored}.run();
  return commands;
}

}  // namespace lockstep::site
