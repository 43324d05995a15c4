// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <string>

/// What the error says that `action` throws; it must be of this type.
template <class Error = c10::Error, class Action>
std::string wordsOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what_without_backtrace();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// Expects that the error that `action` throws says this, and maybe more.
template <class Error, class Action>
void expectError(const std::string& sentence, Action action) {
  const std::string words = wordsOf<Error>(action);
  EXPECT_NE(words.find(sentence), std::string::npos) << sentence << "\n"
                                                     << words;
}
