// How the digits are written by hand: curves through a few points. Where strokes join they share a
// point, and the distortion of a rendering is continuous, so that they still join afterwards.
#include "env/digits.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GLYPH(strokes)                                                                             \
    {                                                                                              \
        (uint8_t) COUNT(strokes), strokes                                                          \
    }

static const env_stroke ZERO_ROUND[] = {
    {9, {{52, 0}, {20, 14}, {5, 50}, {18, 87}, {50, 100}, {82, 87}, {95, 50}, {82, 14}, {52, 0}}}};
static const env_stroke ZERO_OPEN[] = {
    {9, {{70, 6}, {42, 2}, {18, 25}, {10, 60}, {28, 96}, {62, 96}, {88, 62}, {86, 25}, {58, 3}}}};

static const env_stroke ONE_PLAIN[] = {{2, {{50, 0}, {50, 100}}}};
static const env_stroke ONE_FLAG[] = {{2, {{26, 24}, {54, 0}}}, {2, {{54, 0}, {54, 100}}}};
static const env_stroke ONE_BASE[] = {
    {2, {{28, 20}, {52, 0}}}, {2, {{52, 0}, {52, 100}}}, {2, {{24, 100}, {80, 100}}}};

static const env_stroke TWO_FLAT[] = {
    {8, {{8, 26}, {22, 6}, {52, 0}, {82, 10}, {86, 34}, {68, 60}, {38, 82}, {8, 100}}},
    {2, {{8, 100}, {94, 100}}}};
static const env_stroke TWO_LOOP[] = {{12,
                                       {{10, 22},
                                        {30, 2},
                                        {64, 2},
                                        {84, 22},
                                        {74, 50},
                                        {46, 80},
                                        {20, 97},
                                        {7, 88},
                                        {22, 76},
                                        {46, 87},
                                        {70, 98},
                                        {96, 92}}}};

static const env_stroke THREE_ROUND[] = {
    {6, {{12, 12}, {40, 0}, {74, 4}, {86, 24}, {70, 42}, {38, 48}}},
    {6, {{38, 48}, {76, 54}, {92, 74}, {76, 95}, {40, 100}, {8, 88}}}};
static const env_stroke THREE_FLAT[] = {
    {2, {{12, 0}, {88, 0}}},
    {2, {{88, 0}, {46, 42}}},
    {6, {{46, 42}, {80, 48}, {93, 72}, {76, 95}, {40, 100}, {8, 90}}}};

static const env_stroke FOUR_OPEN[] = {
    {3, {{22, 0}, {14, 30}, {10, 56}}}, {2, {{10, 56}, {94, 52}}}, {2, {{78, 8}, {68, 100}}}};
static const env_stroke FOUR_CLOSED[] = {
    {2, {{68, 0}, {5, 66}}}, {2, {{5, 66}, {96, 66}}}, {2, {{68, 0}, {68, 100}}}};

static const env_stroke FIVE_CORNERS[] = {
    {2, {{88, 0}, {24, 0}}},
    {2, {{24, 0}, {16, 44}}},
    {7, {{16, 44}, {46, 36}, {80, 46}, {92, 70}, {76, 93}, {42, 100}, {8, 90}}}};
static const env_stroke FIVE_SOFT[] = {
    {9, {{90, 4}, {52, 2}, {26, 10}, {20, 32}, {46, 46}, {80, 60}, {86, 84}, {54, 100}, {10, 92}}}};

static const env_stroke SIX_CURVED[] = {{11,
                                         {{76, 2},
                                          {42, 16},
                                          {18, 46},
                                          {10, 76},
                                          {28, 97},
                                          {62, 98},
                                          {88, 80},
                                          {80, 58},
                                          {52, 50},
                                          {24, 62},
                                          {11, 80}}}};
static const env_stroke SIX_STRAIGHT[] = {{10,
                                           {{46, 0},
                                            {26, 40},
                                            {16, 74},
                                            {32, 98},
                                            {62, 98},
                                            {84, 82},
                                            {78, 62},
                                            {54, 56},
                                            {30, 66},
                                            {16, 82}}}};

static const env_stroke SEVEN_PLAIN[] = {{2, {{6, 2}, {92, 2}}}, {2, {{92, 2}, {42, 100}}}};
static const env_stroke SEVEN_CURVED[] = {{4, {{6, 16}, {8, 4}, {48, 6}, {90, 2}}},
                                          {4, {{90, 2}, {66, 36}, {50, 70}, {46, 100}}}};
static const env_stroke SEVEN_BARRED[] = {
    {2, {{8, 2}, {92, 2}}}, {2, {{92, 2}, {36, 100}}}, {2, {{30, 50}, {88, 50}}}};

static const env_stroke EIGHT_ONE_STROKE[] = {{13,
                                               {{50, 47},
                                                {22, 32},
                                                {20, 12},
                                                {50, 0},
                                                {80, 12},
                                                {78, 32},
                                                {50, 47},
                                                {16, 67},
                                                {12, 88},
                                                {50, 100},
                                                {88, 88},
                                                {84, 67},
                                                {50, 47}}}};
static const env_stroke EIGHT_SNAKE[] = {{13,
                                          {{86, 12},
                                           {54, 0},
                                           {20, 8},
                                           {22, 32},
                                           {54, 50},
                                           {82, 72},
                                           {76, 94},
                                           {48, 100},
                                           {18, 90},
                                           {22, 68},
                                           {54, 46},
                                           {84, 28},
                                           {86, 12}}}};

static const env_stroke NINE_CURVED[] = {{11,
                                          {{86, 26},
                                           {68, 48},
                                           {34, 52},
                                           {12, 34},
                                           {22, 8},
                                           {54, 0},
                                           {80, 8},
                                           {88, 30},
                                           {84, 58},
                                           {72, 82},
                                           {50, 100}}}};
static const env_stroke NINE_STEM[] = {
    {8, {{84, 10}, {54, 0}, {22, 8}, {10, 30}, {26, 50}, {56, 50}, {78, 34}, {84, 10}}},
    {2, {{84, 10}, {78, 100}}}};

static const env_stroke LETTER_A[] = {
    {2, {{4, 100}, {50, 0}}}, {2, {{50, 0}, {96, 100}}}, {2, {{22, 64}, {78, 64}}}};
static const env_stroke LETTER_B[] = {
    {2, {{10, 0}, {10, 100}}},
    {6, {{10, 0}, {56, 0}, {82, 12}, {80, 36}, {52, 46}, {10, 46}}},
    {6, {{10, 46}, {60, 48}, {92, 62}, {90, 86}, {60, 100}, {10, 100}}}};
static const env_stroke LETTER_C[] = {
    {7, {{90, 18}, {60, 0}, {24, 14}, {6, 50}, {24, 86}, {60, 100}, {92, 82}}}};
// the overhanging ends tell it from a 0
static const env_stroke LETTER_D[] = {
    {2, {{16, 0}, {16, 100}}},
    {9, {{-6, 0}, {16, 0}, {50, 2}, {84, 20}, {95, 50}, {84, 80}, {50, 98}, {16, 100}, {-6, 100}}}};
static const env_stroke LETTER_E[] = {{2, {{12, 0}, {12, 100}}},
                                      {2, {{12, 0}, {90, 0}}},
                                      {2, {{12, 48}, {76, 48}}},
                                      {2, {{12, 100}, {92, 100}}}};
static const env_stroke LETTER_F[] = {
    {2, {{14, 0}, {14, 100}}}, {2, {{14, 0}, {92, 0}}}, {2, {{14, 46}, {76, 46}}}};

static const env_glyph VARIANTS[PSI_MAX_DIGITS][3] = {
    {GLYPH(ZERO_ROUND), GLYPH(ZERO_OPEN)},
    {GLYPH(ONE_PLAIN), GLYPH(ONE_FLAG), GLYPH(ONE_BASE)},
    {GLYPH(TWO_FLAT), GLYPH(TWO_LOOP)},
    {GLYPH(THREE_ROUND), GLYPH(THREE_FLAT)},
    {GLYPH(FOUR_OPEN), GLYPH(FOUR_CLOSED)},
    {GLYPH(FIVE_CORNERS), GLYPH(FIVE_SOFT)},
    {GLYPH(SIX_CURVED), GLYPH(SIX_STRAIGHT)},
    {GLYPH(SEVEN_PLAIN), GLYPH(SEVEN_CURVED), GLYPH(SEVEN_BARRED)},
    {GLYPH(EIGHT_ONE_STROKE), GLYPH(EIGHT_SNAKE)},
    {GLYPH(NINE_CURVED), GLYPH(NINE_STEM)},
    {GLYPH(LETTER_A)},
    {GLYPH(LETTER_B)},
    {GLYPH(LETTER_C)},
    {GLYPH(LETTER_D)},
    {GLYPH(LETTER_E)},
    {GLYPH(LETTER_F)},
};

const env_glyph *env_glyph_variants(unsigned digit, unsigned *n)
{
    for (*n = 0; *n < COUNT(VARIANTS[digit]) && VARIANTS[digit][*n].strokes;) (*n)++;
    return VARIANTS[digit];
}
