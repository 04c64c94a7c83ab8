"""What denies on one side must be denied on the other, in whatever word; what denies nothing explains nothing."""

from __future__ import annotations

import pytest

from curation.translation.comparisons import comparisons, polarity
from curation.translation.sentences import Segment


def lost(original: str, translated: str, target: str) -> bool:
    """Return whether a sentence's negation or limit is lost, or one came in."""
    segment = Segment(original, translated)
    return bool([*polarity(segment, "en", target), *comparisons(segment, "en", target)])


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        # nought denies
        ("ru", "Every C got them zero extra minutes.", "За C они не получают дополнительных минут.",
         "За C они получают дополнительные минуты."),
        ("zh", "Every C got them zero extra minutes.", "每个C不会获得额外的时间。", "每个C会获得额外的时间。"),
        # a limit is said as one
        ("ru", "How much longer can he run if it doesn't go above 60 minutes?",
         "Сколько он ещё может бежать, если это не превышает 60 минут?",
         "Сколько он ещё может бежать, если это превышает 60 минут?"),
        # what is done is not what has run out; a light load is no lacking one
        ("ru", "He trips and can't finish.",
         "Он спотыкается и не может закончить.", "Он спотыкается и может закончить."),
        ("ru", "She returns without a load.", "Она возвращается со скоростью, несущей её, без груза.",
         "Она возвращается со скоростью, несущей её, с грузом."),
        # an evening is not late, and only then is not only
        ("zh", "He can't do homework those nights.", "那些晚上他不能做作业。", "那些晚上他能做作业。"),
        ("zh", "He could not sell at $2, and had to go down to $1 to sell.",
         "他不能以2美元出售，必须降到1美元才能出售。",
         "他能以2美元出售，必须降到1美元才能出售。"),
        # what is irrelevant, sold out, unloaded or unpaid
        ("ru", "3 of them were irrelevant.", "3 из них не имеют отношения к делу.", "3 из них имеют отношения к делу."),
        ("ru", "The DVD was already sold out.", "DVD уже не было в наличии.", "DVD уже было в наличии."),
        ("es", "The rest is unpaid vacation time.", "El resto son días de vacaciones no remuneradas.",
         "El resto son días de vacaciones remuneradas."),
        # contrasts and doubled negations of which one word is gone
        ("zh", "Who prefers dogs to cats?", "谁更喜欢狗而不是猫？", "谁更喜欢狗而是猫？"),
        ("zh", "How many are neither red nor blue?", "有多少既不是红色也不是蓝色？", "有多少既不是红色也是蓝色？"),
        ("ru", "None of the friends worked on it.", "Ни один из друзей не работал над этим.",
         "Ни один из друзей работал над этим."),
    ],
)  # fmt: skip
def test_a_lost_negation_is_noticed_and_one_in_another_word_is_none(
    target: str, original: str, true: str, turned: str
) -> None:
    assert not lost(original, true, target)
    assert lost(original, turned, target)


@pytest.mark.parametrize(
    ("target", "original", "true"),
    [
        ("zh", "How many seats are unoccupied?", "有多少个座位是空着的？"),
        ("zh", "Zookeepers do not notice he is missing until 4 AM.", "直到早上4点饲养员才注意到它失踪了。"),
        ("zh", "5,000 fans stayed home.", "有5,000名观众没有来。"),
        ("zh", "It has either spots or gills, but never both.", "它要么有斑点要么有菌褶，但从不同时具备。"),
        ("zh", "He increased the maximum time to 3 hours.", "他将最大时间增加到3小时。"),
        ("zh", "What is 5 less than 60% of the cats?", "猫的数量的60%减去5是多少？"),
    ],
)
def test_what_denies_in_another_word_or_names_a_limit_otherwise_passes(target: str, original: str, true: str) -> None:
    assert not lost(original, true, target)
