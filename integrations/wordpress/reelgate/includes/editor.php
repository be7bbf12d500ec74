<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

// The picker of the block. WordPress checks the nonce of a signed-in caller of its REST API before these are called.

function register_editor_routes() {
	register_rest_route(
		'reelgate/v1',
		'/videos',
		array(
			'methods'             => 'GET',
			'permission_callback' => __NAMESPACE__ . '\\may_pick',
			'callback'            => __NAMESPACE__ . '\\list_videos',
			'args'                => array(
				'search' => array( 'type' => 'string', 'default' => '', 'maxLength' => 200 ),
				'page'   => array( 'type' => 'integer', 'default' => 1, 'minimum' => 1, 'maximum' => 10000 ),
			),
		)
	);
	register_rest_route(
		'reelgate/v1',
		'/upload-token',
		array(
			'methods'             => 'POST',
			'permission_callback' => __NAMESPACE__ . '\\may_pick',
			'callback'            => __NAMESPACE__ . '\\make_upload_token',
		)
	);
}

/** Authors and others who may add files to the site. */
function may_pick() {
	return current_user_can( 'upload_files' );
}

function list_videos( $request ) {
	$query = array( 'page' => $request['page'], 'limit' => 20, 'countUpTo' => 1000 );
	$reply = call_api( 'GET', with_query( '/videos', '' === $request['search'] ? $query : $query + array( 'q' => $request['search'] ) ) );
	if ( is_wp_error( $reply ) ) {
		return for_editor( $reply );
	}
	$rows = array_map(
		static function ( $video ) {
			return array(
				'id'     => $video['id'],
				'title'  => $video['title'],
				'length' => $video['length'],
				'status' => $video['status'],
				// That of a video that is not public needs the key.
				'poster' => 1 === $video['public'] ? $video['poster'] : '',
			);
		},
		$reply['rows']
	);
	return rest_ensure_response( array( 'count' => $reply['count'], 'videos' => $rows ) );
}

/** For one file, from this site's pages alone, for an hour; the webhooks about the video name who sent it. */
function make_upload_token() {
	$reply = call_api(
		'POST',
		'/upload-tokens',
		array( 'origin' => site_origin( admin_url() ), 'maxFiles' => 1, 'ttl' => HOUR_IN_SECONDS, 'reference' => viewer_id( get_current_user_id() ) )
	);
	return is_wp_error( $reply ) ? for_editor( $reply ) : rest_ensure_response( array( 'token' => $reply['token'] ) );
}

/** The server's refusal as one of this site: its status would say that the editor is not signed in. */
function for_editor( $error ) {
	return new \WP_Error( 'reelgate', $error->get_error_message(), array( 'status' => 502 ) );
}

function enqueue_editor() {
	wp_enqueue_script( 'reelgate-editor', plugins_url( 'assets/editor.js', PLUGIN_FILE ), array( 'wp-blocks', 'wp-element', 'wp-components', 'wp-block-editor', 'wp-api-fetch', 'wp-i18n' ), VERSION, true );
	$values = array(
		'server'  => clean_server( options()['server'] ),
		'mayPick' => may_pick(),
		'vdo'     => 'reelgate' === embedder_of_vdo(),
	);
	wp_add_inline_script( 'reelgate-editor', 'window.reelgateEditor = ' . wp_json_encode( $values, JSON_HEX_TAG | JSON_HEX_AMP ) . ';', 'before' );
	wp_set_script_translations( 'reelgate-editor', 'reelgate' );
}

/** Whose the block vdo/block is. */
function embedder_of_vdo() {
	$block = \WP_Block_Type_Registry::get_instance()->get_registered( 'vdo/block' );
	return $block && __NAMESPACE__ . '\\render_block' === $block->render_callback ? 'reelgate' : 'other';
}
