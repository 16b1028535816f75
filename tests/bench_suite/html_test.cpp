#include "apps/bench/html.h"

#include <gtest/gtest.h>

#include "tests/bench_suite/markup.h"

namespace tessera::bench {
namespace {

TEST(Html, TextIsMadeSafe) {
  EXPECT_EQ(html_text("a <b> & \"c\""), "a &lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(html_text("Tonhöhe \xE2\x96\xB2 \xF0\x9F\x8E\xB5\n\t"),
            "Tonhöhe \xE2\x96\xB2 \xF0\x9F\x8E\xB5\n\t");
}

TEST(Html, WhatIsNoTextIsReplaced) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(html_text(std::string("a\0b\x1B", 4)), "a" + mark + "b" + mark);
  EXPECT_EQ(html_text("\xFF"), mark);
  EXPECT_EQ(html_text("x\xC3"), "x" + mark);                            // cut off
  EXPECT_EQ(html_text("\xC0\xAF"), mark + mark);                        // overlong
  EXPECT_EQ(html_text("\xED\xA0\x80"), mark + mark + mark);             // a surrogate
  EXPECT_EQ(html_text("\xE0\x80\xAF"), mark + mark + mark);             // overlong
  EXPECT_EQ(html_text("\xF4\x90\x80\x80"), mark + mark + mark + mark);  // beyond the last
  EXPECT_EQ(html_text("\xC2\x85"), mark + mark);                        // a control character
}

TEST(Html, Base64OfTheStandardsExamples) {
  const auto coded = [](const std::string& text) { return base64(std::as_bytes(std::span(text))); };
  EXPECT_EQ(coded(""), "");
  EXPECT_EQ(coded("f"), "Zg==");
  EXPECT_EQ(coded("fo"), "Zm8=");
  EXPECT_EQ(coded("foo"), "Zm9v");
  EXPECT_EQ(coded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(coded("\xFB\xFF\xFE"), "+//+");
  const std::string text = "RIFF";
  EXPECT_EQ(data_uri("audio/wav", std::as_bytes(std::span(text))), "data:audio/wav;base64,UklGRg==");
}

TEST(Html, Elements) {
  EXPECT_EQ(element("p", "x"), "<p>x</p>\n");
  EXPECT_EQ(element("a", "x", "href=\"#y\""), "<a href=\"#y\">x</a>\n");
  EXPECT_EQ(number_cell("<1", "a \"b\""), "<td class=\"n\" title=\"a &quot;b&quot;\">&lt;1</td>\n");
}

TEST(Markup, TheCheckItselfFindsTrouble) {
  EXPECT_EQ(test::markup_trouble("<!DOCTYPE html>\n<p>a<br>b <img alt=\"x > y\"></p><line/>"), "");
  EXPECT_NE(test::markup_trouble("<p><b></p></b>"), "");
  EXPECT_NE(test::markup_trouble("<p>"), "");
  EXPECT_NE(test::markup_trouble("</p>"), "");
}

}  // namespace
}  // namespace tessera::bench
