//! Words that stand for each other in the descriptions of tools, from common knowledge of what tools do.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::words::stem;

/// The stems that a stem may stand for.
pub fn synonyms(stem: &str) -> &'static [String] {
    SYNONYMS.get(stem).map(Vec::as_slice).unwrap_or_default()
}

/// Whether a stem is a verb that says little: most tools get or make something.
pub fn is_common_verb(stem: &str) -> bool {
    COMMON_VERBS.contains(stem)
}

/// Whether a word is in every text.
pub fn is_filler(word: &str) -> bool {
    FILLERS.contains(word)
}

/// What a pair of Chinese characters means: servers are described in Chinese and asked for in English.
pub fn meaning(pair: &str) -> Option<&'static str> {
    MEANINGS.get(pair).copied()
}

static SYNONYMS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<String>> = HashMap::new();
    for group in GROUPS.lines() {
        let stems: Vec<String> = group.split_whitespace().map(stem).collect();
        for one in &stems {
            let known = all.entry(one.clone()).or_default();
            for other in &stems {
                if other != one && !known.contains(other) {
                    known.push(other.clone());
                }
            }
        }
    }
    all
});

static COMMON_VERBS: LazyLock<HashSet<String>> =
    LazyLock::new(|| VERBS.split_whitespace().map(stem).collect());

static FILLERS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP.split_whitespace().collect());

static MEANINGS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let entries = CHINESE.split_whitespace();
    entries.filter_map(|entry| entry.split_once('=')).collect()
});

const STOP: &str = "\
    a an the of to in on for and or with by from is are be as at it this that into using use via its their your \
    you i me my our we them they these those which what how can should will would any all each every if then so \
    not no do does it's has have was were been than such also more other";

const VERBS: &str = "\
    create make generate build produce add insert append put delete remove erase clear find search lookup query \
    locate look list show display view get fetch retrieve obtain read load access collect write save store update \
    edit modify change set send post run execute perform start use check provide return give take prepare gather";

/// Each line a group.
const GROUPS: &str = "\
create make generate new build produce
add insert append put attach
delete remove erase drop clear destroy trash
find search lookup query locate discover look seek
list show display enumerate view
get fetch retrieve obtain read load access acquire collect
write save store export
update edit modify change set alter adjust revise
send post publish share deliver
run execute launch start invoke perform
convert transform export translate
open navigate visit browse go
copy duplicate clone
move rename relocate
download fetch
upload attach
check verify validate inspect test
compare diff difference
merge combine join concatenate unify
split divide separate
summarize summary overview abstract
analyze analysis examine evaluate assess review
calculate compute math arithmetic
extract parse scrape crawl
capture screenshot snapshot
install setup deploy
schedule plan arrange
book reserve order
monitor track watch
sort rank order
draw plot chart graph visualize visualization diagram
picture image photo illustration
document doc word docx
presentation slide ppt powerpoint pptx
spreadsheet excel xlsx sheet workbook
directory folder path
repository repo github git
file document
text content
information info detail data metadata
profile overview info
weather forecast temperature climate
price cost quote
stock ticker share equity symbol
company corporation business
financial finance statement
paper article publication literature research arxiv scholar
news headline story
trend hot popular top ranking
website webpage page url site web link internet online
click press tap
fill type enter input
map location place geocode coordinate address geographic
route direction navigation itinerary path distance
flight plane airline
train railway ticket
hotel accommodation airbnb lodging listing
restaurant food dining recipe meal
movie film
song music track
video youtube clip
email mail
message chat
calendar event meeting
time date clock
timezone zone
currency exchange forex
code script program
commit revision
issue bug
database sql table
pdf document
drug medicine medication
disease illness condition
gene variant genomic
trial clinical study
crypto bitcoin coin
transcript subtitle caption
average mean
translate translation language
password secret
user account
comment reply
review rating
package library module dependency npm
version release
statistic metric
history historical past
recent latest current newest
question answer
museum art artwork exhibit collection
book novel reading
game match player champion
recipe dish cook ingredient
font style format
color colour
row column cell
paragraph heading section
header title heading
template theme";

const CHINESE: &str = "\
    新闻=news 资讯=news 热榜=trend 热门=popular 热搜=trend 排行=rank 榜单=rank 趋势=trend 搜索=search \
    查询=query 天气=weather 地图=map 路线=route 车票=ticket 车站=station 火车=train 航班=flight \
    酒店=hotel 视频=video 音乐=music 游戏=game 电影=movie 图片=image 文件=file 文档=document 网页=web \
    小说=novel 读书=read 书籍=book 图书=book 文章=article 论文=paper 股票=stock 金融=finance \
    经济=economy 商业=business 产品=product 商品=product 购物=shopping 消费=consumer \
    科技=technology 技术=technology 互联=internet 人工=ai 智能=ai 国际=world 社会=society \
    政治=politics 体育=sport 娱乐=entertainment 健康=health 教育=education 日期=date 时间=time \
    城市=city 价格=price 翻译=translate 用户=user 评论=comment 创建=create 删除=delete 更新=update \
    获取=get 数据=data 内容=content 开发=develop 编程=program 汽车=car 美食=food 旅游=travel \
    手机=phone 公司=company 投资=invest 市场=market";
